#include "trainer/parallel/stage_link.h"

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

StageLink::StageLink(std::unique_ptr<Communicator> boundary, Communicator* tp, int lower_tp, int upper_tp,
                     at::Device place)
    : boundary_(std::move(boundary)),
      tp_(tp),
      place_(place),
      lower_tp_(lower_tp),
      upper_tp_(upper_tp),
      lower_(boundary_->rank() < lower_tp),
      tp_rank_(lower_ ? boundary_->rank() : boundary_->rank() - lower_tp) {}

PendingSend StageLink::send(const at::Tensor& tensor) {
  const at::Tensor out = tensor.detach().contiguous();
  const MessagePlan plan = lower_ ? plan_messages(out.numel(), out.element_size(), lower_tp_, upper_tp_)
                                  : plan_messages(out.numel(), out.element_size(), upper_tp_, lower_tp_);
  std::vector<Transfer> transfers;
  for (const StageMessage& message : plan.messages) {
    if (message.sender != tp_rank_) continue;
    transfers.push_back({Transfer::Kind::send,
                         static_cast<char*>(out.data_ptr()) + message.first * out.element_size(),
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
  work_->wait_on(stream_of(tensor_));
  if (tp_) {
    const int64_t part = tensor_.numel() / tp_->size();
    char* data = static_cast<char*>(tensor_.data_ptr());
    tp_->all_gather(data + tp_->rank() * part * tensor_.element_size(), data, static_cast<std::size_t>(part),
                    element_type(tensor_.scalar_type()), stream_of(tensor_));
  }
  return std::move(tensor_);
}

PendingReceive StageLink::receive(at::IntArrayRef shape, at::ScalarType dtype) {
  at::Tensor in = at::empty(shape, at::TensorOptions(place_).dtype(dtype));
  const MessagePlan plan = lower_ ? plan_messages(in.numel(), in.element_size(), upper_tp_, lower_tp_)
                                  : plan_messages(in.numel(), in.element_size(), lower_tp_, upper_tp_);
  const ElementType type = element_type(dtype);
  std::vector<Transfer> transfers;
  for (const StageMessage& message : plan.messages) {
    if (message.receiver != tp_rank_) continue;
    transfers.push_back({Transfer::Kind::recv,
                         static_cast<char*>(in.data_ptr()) + message.first * in.element_size(),
                         static_cast<std::size_t>(message.count), type,
                         lower_ ? lower_tp_ + message.sender : message.sender});
  }
  return {in, boundary_->exchange(transfers, stream_of(in)), plan.gather ? tp_ : nullptr};
}

}  // namespace sailor
