#include "trainer/parallel/stage_link.h"

#include <algorithm>
#include <numeric>

#include "trainer/model/element_types.h"
#include "trainer/model/torch_device.h"

namespace sailor {

MessagePlan plan_messages(int64_t elements, int64_t element_bytes, int sending_tp, int receiving_tp) {
  MessagePlan plan;
  const int chunks = std::lcm(sending_tp, receiving_tp);
  if (chunks == 1 || elements % chunks != 0 || elements * element_bytes < kSmallActivationBytes) {
    for (int receiver = 0; receiver < receiving_tp; ++receiver) {
      plan.messages.push_back({receiver % sending_tp, receiver, 0, elements});
    }
    return plan;
  }
  plan.gather = receiving_tp > 1;
  const int64_t chunk = elements / chunks;
  for (int c = 0; c < chunks; ++c) {
    const int sender = c / (chunks / sending_tp);
    const int receiver = c / (chunks / receiving_tp);
    if (!plan.messages.empty() && plan.messages.back().sender == sender &&
        plan.messages.back().receiver == receiver) {
      plan.messages.back().count += chunk;
    } else {
      plan.messages.push_back({sender, receiver, c * chunk, chunk});
    }
  }
  return plan;
}

MessagePlan plan_share_messages(int64_t tokens, int64_t columns, int sending_tp, int receiving_tp) {
  MessagePlan plan;
  for (int sender = 0; sender < sending_tp; ++sender) {
    const BlockRange sent = block_of(static_cast<std::size_t>(tokens), sending_tp, sender);
    for (int receiver = 0; receiver < receiving_tp; ++receiver) {
      const BlockRange wanted = block_of(static_cast<std::size_t>(tokens), receiving_tp, receiver);
      const auto first = static_cast<int64_t>(std::max(sent.first, wanted.first));
      const auto end = static_cast<int64_t>(std::min(sent.first + sent.count, wanted.first + wanted.count));
      if (first < end) plan.messages.push_back({sender, receiver, first * columns, (end - first) * columns});
    }
  }
  return plan;
}

StageLink::StageLink(std::unique_ptr<Communicator> boundary, Communicator* tp, int lower_tp, int upper_tp,
                     at::Device place, bool split_tokens)
    : boundary_(std::move(boundary)),
      tp_(tp),
      place_(place),
      lower_tp_(lower_tp),
      upper_tp_(upper_tp),
      split_tokens_(split_tokens),
      lower_(boundary_->rank() < lower_tp),
      tp_rank_(lower_ ? boundary_->rank() : boundary_->rank() - lower_tp) {}

MessagePlan StageLink::messages(at::IntArrayRef shape, at::ScalarType dtype, bool upwards) const {
  const int from = upwards ? lower_tp_ : upper_tp_, to = upwards ? upper_tp_ : lower_tp_;
  if (split_tokens_) return plan_share_messages(shape[0] * shape[1], shape[2], from, to);
  return plan_messages(c10::multiply_integers(shape), static_cast<int64_t>(c10::elementSize(dtype)), from,
                       to);
}

BlockRange StageLink::share(at::IntArrayRef shape) const {
  return block_of(static_cast<std::size_t>(shape[0] * shape[1]), lower_ ? lower_tp_ : upper_tp_, tp_rank_);
}

std::vector<int64_t> StageLink::sizes(at::IntArrayRef shape) const {
  if (!shares()) return shape.vec();
  return {static_cast<int64_t>(share(shape).count), shape[2]};
}

at::Tensor StageLink::zeros(at::IntArrayRef shape, at::ScalarType dtype) const {
  return at::zeros(sizes(shape), at::TensorOptions(place_).dtype(dtype));
}

PendingSend StageLink::send(const at::Tensor& tensor, at::IntArrayRef shape) {
  const at::Tensor out = tensor.detach().contiguous();
  const int64_t begin = split_tokens_ ? static_cast<int64_t>(share(shape).first) * shape[2] : 0;
  std::vector<Transfer> transfers;
  for (const StageMessage& message : messages(shape, out.scalar_type(), lower_).messages) {
    if (message.sender != tp_rank_) continue;
    transfers.push_back({Transfer::Kind::send,
                         static_cast<char*>(out.data_ptr()) + (message.first - begin) * out.element_size(),
                         static_cast<std::size_t>(message.count), element_type(out.scalar_type()),
                         lower_ ? lower_tp_ + message.receiver : message.receiver});
  }
  if (transfers.empty()) return {out, nullptr};
  return {out, boundary_->exchange(transfers, stream_of(out))};
}

void PendingSend::wait() {
  if (work_) work_->wait_on(stream_of(tensor_));
}

at::Tensor PendingReceive::take() {
  if (work_) work_->wait_on(stream_of(tensor_));
  if (tp_) {
    const int64_t part = tensor_.numel() / tp_->size();
    char* data = static_cast<char*>(tensor_.data_ptr());
    tp_->all_gather(data + tp_->rank() * part * tensor_.element_size(), data, static_cast<std::size_t>(part),
                    element_type(tensor_.scalar_type()), stream_of(tensor_));
  }
  return std::move(tensor_);
}

PendingReceive StageLink::receive(at::IntArrayRef shape, at::ScalarType dtype) {
  const MessagePlan plan = messages(shape, dtype, !lower_);
  const int64_t begin = shares() ? static_cast<int64_t>(share(shape).first) * shape[2] : 0;
  at::Tensor in = at::empty(sizes(shape), at::TensorOptions(place_).dtype(dtype));
  const ElementType type = element_type(dtype);
  std::vector<Transfer> transfers;
  for (const StageMessage& message : plan.messages) {
    if (message.receiver != tp_rank_) continue;
    transfers.push_back({Transfer::Kind::recv,
                         static_cast<char*>(in.data_ptr()) + (message.first - begin) * in.element_size(),
                         static_cast<std::size_t>(message.count), type,
                         lower_ ? lower_tp_ + message.sender : message.sender});
  }
  if (transfers.empty()) return {in, nullptr, nullptr};
  return {in, boundary_->exchange(transfers, stream_of(in)), plan.gather ? tp_ : nullptr};
}

}  // namespace sailor
