// The gradients of one rank and their way to the optimizer: accumulated in a flat buffer, summed over all
// pipelines while the last backward still runs, and, with ZeRO-1, handed to the ranks that update them.
//
//     sync.begin_iteration();
//     sync.layer_finished(layer, last);     // after each layer's backward; `last`: of the last microbatch
//     sync.finish();                        // now the gradients of slices() are the sums
//     optimizer->step(...);                 // over slices()
//     sync.share_values();                  // ZeRO-1: everybody gets what others updated
//
// A bucket (gradient_buckets.h) is on its way as soon as its layers are finished; sums run on a thread of
// their own, in an order that is the same on all ranks, in pieces that stay in a processor's cache. On a
// device they are enqueued on a stream of their own, a bucket's part at a time. Without
// ZeRO-1 every rank ends up with all sums of its parameters (those of replicated parameters come from TP rank
// 0); with it a rank has those of its slices only: of each piece, the block that block_of() gives it.
//
// Functions throw CommError, after which the object is of no use. One thread per object.
#pragma once

#include <memory>
#include <vector>

#include "planner/plan/plan.h"
#include "planner/plan/rank_layout.h"
#include "trainer/comm/communicator.h"
#include "trainer/comm/device.h"
#include "trainer/comm/work_queue.h"
#include "trainer/model/layer.h"
#include "trainer/optim/optimizer.h"
#include "trainer/parallel/gradient_buckets.h"
#include "trainer/parallel/gradient_buffer.h"

namespace sailor {

class GradientSync {
 public:
  // Creates the communicators of the groups that `rank` is in. `tp` is the rank's TP group, nullptr when
  // alone; it and the parameters (each once) outlive the object. With plan.zero1 the values of the parameters
  // move into a buffer of this object. `tied_embeddings` as in the model. Parameters are in the memory of
  // `device`, which outlives the object, and of the factory's communicators.
  GradientSync(const Plan& plan, const RankLayout& layout, int rank, CommFactory& factory, Communicator* tp,
               const std::vector<Parameter*>& parameters, bool tied_embeddings = false,
               Device& device = host_device());
  ~GradientSync();

  void begin_iteration();
  // The backward of one microbatch through a layer is done; `last`: no other microbatch follows. Called from
  // the last layer down for the last microbatch.
  void layer_finished(int layer, bool last);
  void finish();
  void share_values();
  // After finish() or share_values(), when computations have come so far: whether what they got is right.
  void settle() const;

  // What this rank updates. Views of the values and of the gradients.
  std::vector<OptimizerSlice> slices() const;
  // Sum of the squares of the gradients, after finish(), such that the sums of all ranks make up the model's.
  double own_sum_of_squares() const;

 private:
  GradientSync(const Plan& plan, const RankLayout& layout, int rank, CommFactory& factory, Communicator* tp,
               const std::vector<Parameter*>& parameters, const std::vector<GradientGroup>& all_groups,
               Device& device);

  struct Part;
  using PieceFunction = void (GradientSync::*)(Part&, int64_t first, int64_t count);
  void start_next_bucket();
  void make_staging();
  int64_t piece_elements(const Part& part) const;
  void for_each_piece(Part& part, PieceFunction function);
  void sum_piece(Part& part, int64_t first, int64_t count);
  void share_piece(Part& part, int64_t first, int64_t count);
  // Of `buffer`, the flat gradients or values: where elements [first, first + count) of a part are worked on.
  // In place where the part lies together; else in the staging area, which copy() fills or empties.
  char* memory_of(const Part& part, const at::Tensor& buffer, int64_t first) const;
  enum class Direction { out, in };  // of the buffer
  void copy(const Part& part, const at::Tensor& buffer, int64_t first, int64_t count, char* memory,
            Direction direction, Stream stream) const;
  template <class Function>
  void for_each_run(const Part& part, int64_t first, int64_t count, Function&& function) const;
  void broadcast_replicated(const at::Tensor& buffer);
  OptimizerSlice slice(std::size_t i, int64_t first, int64_t count) const;
  std::vector<OptimizerSlice> own_slices() const;  // with ZeRO-1: of what is summed

  const RankSlot slot_;
  Device& device_;
  Communicator* const tp_;
  const bool zero1_;
  const int num_layers_;
  GradientLayout layout_;
  std::vector<std::unique_ptr<Communicator>> groups_;  // by index of the plan's groups; nullptr = not in it
  GradientBuffer buffer_;
  at::Tensor values_;                               // with ZeRO-1, in the order of the buffer
  std::vector<std::vector<std::size_t>> of_layer_;  // parameters of each layer
  std::vector<std::vector<Part>> parts_;            // by bucket
  std::size_t next_bucket_ = 0;
  at::Tensor staging_;                // bytes, beside the buffer
  bool summing_ = false;              // between the first sum and finish()
  std::unique_ptr<WorkQueue> queue_;  // nullptr: nothing to sum, or a device does
};

}  // namespace sailor
