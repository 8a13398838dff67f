#include "trainer/parallel/stage_link.h"

#include <algorithm>
#include <numeric>

#include "trainer/model/element_types.h"
#include "trainer/model/tensor_parallel.h"
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

MessagePlan plan_share_messages(int64_t tokens, int64_t columns, const ReplicaShape& sending,
                                const ReplicaShape& receiving) {
  MessagePlan plan;
  for (int sender = 0; sender < sending.gpus(); ++sender) {
    const BlockRange sent = token_share(tokens, sending, sender);
    for (int receiver = 0; receiver < receiving.gpus(); ++receiver) {
      const BlockRange wanted = token_share(tokens, receiving, receiver);
      const auto first = static_cast<int64_t>(std::max(sent.first, wanted.first));
      const auto end = static_cast<int64_t>(std::min(sent.first + sent.count, wanted.first + wanted.count));
      if (first < end) plan.messages.push_back({sender, receiver, first * columns, (end - first) * columns});
    }
  }
  return plan;
}

StageLink::StageLink(std::unique_ptr<Communicator> boundary, Communicator* tp, const ReplicaShape& lower,
                     const ReplicaShape& upper, at::Device place, bool split_tokens)
    : boundary_(std::move(boundary)),
      tp_(tp),
      place_(place),
      lower_(lower),
      upper_(upper),
      split_tokens_(split_tokens),
      is_lower_(boundary_->rank() < lower.gpus()),
      gpu_(is_lower_ ? boundary_->rank() : boundary_->rank() - lower.gpus()) {}

MessagePlan StageLink::messages(at::IntArrayRef shape, at::ScalarType dtype, bool upwards) const {
  const ReplicaShape &from = upwards ? lower_ : upper_, &to = upwards ? upper_ : lower_;
  if (split_tokens_) return plan_share_messages(shape[0] * shape[1], shape[2], from, to);
  return plan_messages(c10::multiply_integers(shape), static_cast<int64_t>(c10::elementSize(dtype)), from.tp,
                       to.tp);
}

BlockRange StageLink::share(at::IntArrayRef shape) const {
  return token_share(shape[0] * shape[1], own(), gpu_);
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
  for (const StageMessage& message : messages(shape, out.scalar_type(), is_lower_).messages) {
    if (message.sender != gpu_) continue;
    transfers.push_back({Transfer::Kind::send,
                         static_cast<char*>(out.data_ptr()) + (message.first - begin) * out.element_size(),
                         static_cast<std::size_t>(message.count), element_type(out.scalar_type()),
                         other(message.receiver)});
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
  const MessagePlan plan = messages(shape, dtype, !is_lower_);
  const int64_t begin = shares() ? static_cast<int64_t>(share(shape).first) * shape[2] : 0;
  at::Tensor in = at::empty(sizes(shape), at::TensorOptions(place_).dtype(dtype));
  const ElementType type = element_type(dtype);
  std::vector<Transfer> transfers;
  for (const StageMessage& message : plan.messages) {
    if (message.receiver != gpu_) continue;
    transfers.push_back({Transfer::Kind::recv,
                         static_cast<char*>(in.data_ptr()) + (message.first - begin) * in.element_size(),
                         static_cast<std::size_t>(message.count), type, other(message.sender)});
  }
  if (transfers.empty()) return {in, nullptr, nullptr};
  return {in, boundary_->exchange(transfers, stream_of(in)), plan.gather ? tp_ : nullptr};
}

}  // namespace sailor
