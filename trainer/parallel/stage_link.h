// Activations and their gradients between two neighbouring stages with TP degrees of their own.
//
// The tensor is replicated within each TP group. Large ones travel once: lcm(a, b) chunks from the sending
// ranks to the receiving ones, then an all-gather inside the receiving TP group, whose links are the fast
// ones. Small ones are sent whole to every receiver, which saves the all-gather's latency. plan_messages()
// decides from sizes alone, so that both sides agree.
#pragma once

#include <ATen/ATen.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "trainer/comm/communicator.h"

namespace sailor {

struct StageMessage {
  int sender = 0;     // TP rank in the sending stage
  int receiver = 0;   // TP rank in the receiving stage
  int64_t first = 0;  // elements [first, first + count) of the flat tensor
  int64_t count = 0;
};

struct MessagePlan {
  bool gather = false;  // receivers hold equal parts and must all-gather
  std::vector<StageMessage> messages;
};

// From here on a tensor is sent in parts.
constexpr int64_t kSmallActivationBytes = 65536;

MessagePlan plan_messages(int64_t elements, int64_t element_bytes, int sending_tp, int receiving_tp);

// A tensor on its way out, kept alive until it has left.
class PendingSend {
 public:
  PendingSend(at::Tensor tensor, std::vector<std::unique_ptr<Work>> works)
      : tensor_(std::move(tensor)), works_(std::move(works)) {}
  // Until it has left, or until computations on a device come after that.
  void wait();
  // Whether it has left.
  bool done() {
    return std::all_of(works_.begin(), works_.end(), [](const auto& work) { return work->done(); });
  }

 private:
  at::Tensor tensor_;  // declared first: destroyed last
  std::vector<std::unique_ptr<Work>> works_;
};

// A tensor on its way in, whose bytes arrive while something else is computed.
class PendingReceive {
 public:
  PendingReceive() = default;
  // With `tp`, this rank gets its equal part of the tensor, and the group puts the parts together.
  PendingReceive(at::Tensor tensor, std::unique_ptr<Work> work, Communicator* tp)
      : tensor_(std::move(tensor)), work_(std::move(work)), tp_(tp) {}
  // Blocks until the tensor is there, or lets computations on a device do so. Once, in the order of the
  // receives of the TP group.
  at::Tensor take();

 private:
  at::Tensor tensor_;  // declared first: destroyed last
  std::unique_ptr<Work> work_;
  Communicator* tp_ = nullptr;
};

// One rank's end of the boundary between two groups of GPUs: activations go from the lower to the upper one,
// their gradients back. Tensors of each direction arrive in the order in which they were sent. One thread per
// object.
class StageLink {
 public:
  // `boundary` holds the `lower_tp` ranks of the lower group, then the `upper_tp` ranks of the upper one.
  // `tp` is the caller's own TP group, nullptr when alone; it outlives the link. Tensors are in `place`,
  // which is the communicators' memory.
  StageLink(std::unique_ptr<Communicator> boundary, Communicator* tp, int lower_tp, int upper_tp,
            at::Device place = at::kCPU);

  // Asynchronous: an activation when called by the lower group, its gradient when called by the upper one.
  PendingSend send(const at::Tensor& tensor);
  // Asks for the other group's next tensor, of a shape that both know. Returns at once.
  PendingReceive receive(at::IntArrayRef shape, at::ScalarType dtype);
  // As Communicator's.
  void settle() { boundary_->settle(); }

 private:
  std::unique_ptr<Communicator> boundary_;
  Communicator* tp_;
  at::Device place_;
  int lower_tp_, upper_tp_;
  bool lower_;  // the caller is in the lower group
  int tp_rank_;
};

}  // namespace sailor
