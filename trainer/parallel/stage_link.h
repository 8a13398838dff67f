// Messages between two neighbouring stages with different TP degrees: activations and their gradients.
//
// The tensor is replicated within each TP group. Large tensors are sent once: lcm(a, b) chunks from the
// sending ranks to the receiving ones, then an all-gather inside the receiving TP group, which has the
// fastest links. Small ones are sent completely to every receiver, which saves the all-gather's latency.
// plan_messages() decides by size alone, so that both sides agree.
//
// With sequence or context parallelism every rank has its share of the tokens
// (trainer/model/tensor_parallel.h), and a message is what two shares have in common: it is sent once, at any
// size, and nothing is gathered.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "planner/spec/replica_shape.h"
#include "trainer/comm/communicator.h"

namespace sailor {

struct StageMessage {
  int sender = 0;     // GPU of the sending stage
  int receiver = 0;   // GPU of the receiving stage
  int64_t first = 0;  // elements [first, first + count) of the flat tensor
  int64_t count = 0;
};

struct MessagePlan {
  bool gather = false;  // receivers have equal parts and must all-gather
  std::vector<StageMessage> messages;
};

// Larger tensors are sent in parts. The planner knows it, too (`whole_messages` in etc/frameworks).
constexpr int64_t kSmallActivationBytes = 65536;

MessagePlan plan_messages(int64_t elements, int64_t element_bytes, int sending_tp, int receiving_tp);
// Of activations whose tokens are split, with `columns` elements each.
MessagePlan plan_share_messages(int64_t tokens, int64_t columns, const ReplicaShape& sending,
                                const ReplicaShape& receiving);

// A tensor being sent, kept alive until it has left.
class PendingSend {
 public:
  // `work` is null if this rank sends none of it.
  PendingSend(at::Tensor tensor, std::unique_ptr<Work> work)
      : tensor_(std::move(tensor)), work_(std::move(work)) {}
  // Waits until it has left; on a device, makes later computations wait.
  void wait();
  // Has it left?
  bool done() { return !work_ || work_->done(); }

 private:
  at::Tensor tensor_;  // declared first: destroyed last
  std::unique_ptr<Work> work_;
};

// A tensor being received while something else is computed.
class PendingReceive {
 public:
  PendingReceive() = default;
  // With `tp`, this rank gets its equal part of the tensor, and the group gathers the parts.
  PendingReceive(at::Tensor tensor, std::unique_ptr<Work> work, Communicator* tp)
      : tensor_(std::move(tensor)), work_(std::move(work)), tp_(tp) {}
  // Blocks until the tensor is there; on a device, makes later computations wait. Call it once, in the order
  // of the receives of the TP group.
  at::Tensor take();

 private:
  at::Tensor tensor_;  // declared first: destroyed last
  std::unique_ptr<Work> work_;
  Communicator* tp_ = nullptr;
};

// One rank's end of the boundary between two GPU groups: activations go from the lower to the upper one,
// their gradients back. Tensors of each direction arrive in the order in which they were sent. One thread per
// object.
class StageLink {
 public:
  // `boundary` has the ranks of the lower group, then those of the upper one. `tp` is the caller's own TP
  // group, or nullptr; it outlives the link. Tensors are in `place`, the communicators' memory.
  // `split_tokens`: both groups split them, as context parallelism requires.
  StageLink(std::unique_ptr<Communicator> boundary, Communicator* tp, const ReplicaShape& lower,
            const ReplicaShape& upper, at::Device place = at::kCPU, bool split_tokens = false);

  // Asynchronous: sends an activation in the lower group, its gradient in the upper one. `shape` is that of
  // the whole tensor, [sequences, length, hidden], which both groups know.
  PendingSend send(const at::Tensor& tensor, at::IntArrayRef shape);
  // Posts the receive of the other group's next tensor, or of this rank's share. Returns at once.
  PendingReceive receive(at::IntArrayRef shape, at::ScalarType dtype);
  // A tensor like a received one.
  at::Tensor zeros(at::IntArrayRef shape, at::ScalarType dtype) const;
  // Like Communicator's.
  void settle() { boundary_->settle(); }

 private:
  MessagePlan messages(at::IntArrayRef shape, at::ScalarType dtype, bool upwards) const;
  const ReplicaShape& own() const { return is_lower_ ? lower_ : upper_; }
  // Are this rank's tensors only its share of the tokens?
  bool shares() const { return split_tokens_ && own().gpus() > 1; }
  // Rank in the boundary of a GPU of the other group.
  int other(int gpu) const { return is_lower_ ? lower_.gpus() + gpu : gpu; }
  // This rank's rows of a tensor whose tokens are split.
  BlockRange share(at::IntArrayRef shape) const;
  // Those of a received tensor.
  std::vector<int64_t> sizes(at::IntArrayRef shape) const;

  std::unique_ptr<Communicator> boundary_;
  Communicator* tp_;
  at::Device place_;
  ReplicaShape lower_, upper_;
  bool split_tokens_;
  bool is_lower_;  // the caller is in the lower group
  int gpu_;        // of it
};

}  // namespace sailor
