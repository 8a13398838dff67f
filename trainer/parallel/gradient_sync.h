// The gradients of one rank until the optimizer step: accumulated in a flat buffer, reduced over all
// pipelines while the last backward still runs, and, with ZeRO-1, reduced to the ranks that update them. With
// ZeRO-2 they are reduced to these ranks after every microbatch, and accumulated there. With ZeRO-3 the
// values are sharded as well, and gathered for each layer's forward and backward (parameter_gathers.h).
//
//     sync.begin_iteration();
//     sync.forward_begins(layer);           // ZeRO-3: before each layer's forward
//     sync.forward_ends(layer);             // and after it
//     sync.layer_begins(layer);             // before each layer's backward
//     sync.layer_finished(layer, last);     // after it; `last`: of the last microbatch
//     sync.finish();                        // now the gradients of slices() are the sums
//     optimizer->step(...);                 // over slices()
//     sync.share_values();                  // ZeRO-1: everybody gets what others updated, and keeps it
//
// With hybrid ZeRO (Plan::zero_group) a gradient group falls into equal parts, one for each group of
// pipelines, in which ranks share what they update. A reduction within a part is followed by one of each
// rank's own block over the ranks with the same place in all parts: once an iteration, with ZeRO-2 after all
// rounds.
//
// A bucket (gradient_buckets.h) is sent as soon as its layers are finished. Reductions run on their own
// thread, in an order that is equal on all ranks, in pieces that stay in a processor's cache. On a device
// they are enqueued on their own stream, one part of a bucket at a time. Without ZeRO-1 every rank ends up
// with all reduced gradients of its parameters (those of replicated parameters come from TP rank 0); with it
// a rank has only those of its slices: of each piece, the block that block_of() gives it. With ZeRO-2 the
// buffer has the gradients of two layers, which take turns (gradient_rounds.h): while one is reduced, the
// backward of the next one runs.
//
// With sequence parallelism every rank of a TP group has the gradients of its own tokens for replicated
// parameters: they are summed over the group first, a bucket at a time.
//
// Functions throw CommError, after which the object is unusable. One thread per object.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "planner/plan/plan.h"
#include "planner/plan/rank_layout.h"
#include "trainer/comm/background_work.h"
#include "trainer/comm/communicator.h"
#include "trainer/comm/device.h"
#include "trainer/model/layer.h"
#include "trainer/optim/optimizer.h"
#include "trainer/parallel/gradient_buckets.h"
#include "trainer/parallel/gradient_buffer.h"
#include "trainer/parallel/gradient_rounds.h"
#include "trainer/parallel/parameter_gathers.h"
#include "trainer/parallel/part_memory.h"

namespace sailor {

class GradientSync {
 public:
  // Creates the communicators of the groups of `rank`. `tp` is the rank's TP group, or nullptr; it and the
  // parameters (each once) outlive the object. With ZeRO-1 the values of the parameters move into a buffer of
  // this object; with ZeRO-3 they are undefined until set_values() has been called for each.
  // `tied_embeddings` as in the model. Parameters are in the memory of `device`, which outlives the object,
  // and of the factory's communicators.
  GradientSync(const Plan& plan, const RankLayout& layout, int rank, CommFactory& factory, Communicator* tp,
               const std::vector<Parameter*>& parameters, bool tied_embeddings = false,
               Device& device = host_device());
  ~GradientSync();

  // The values of a parameter: those of all its elements on this rank.
  void set_values(const std::string& name, const at::Tensor& values);

  // For backwards before begin_iteration(), whose gradients nobody needs.
  void begin_warm_up(double loss_scale) { buffer_.begin_iteration(loss_scale); }
  void layer_warmed_up(int layer) { buffer_.collect(of_layer_.at(static_cast<std::size_t>(layer))); }
  // See GradientBuffer. `measure`: own_unreduced_squares() is of this iteration.
  void begin_iteration(double loss_scale = 1, bool measure = false);
  // Before a forward without backward, of the microbatches for which `computes` is true, and after it.
  void begin_evaluation(const std::function<bool(int)>& computes);
  void end_evaluation();
  // Call them when the forward of one microbatch through a layer begins and when it is done.
  void forward_begins(int layer);
  void forward_ends(int layer);
  // Call them when the backward of one microbatch through a layer begins and when it is done; `last`: no
  // other microbatch follows. For the last microbatch, or with ZeRO-2 every one, call them from the last
  // layer down.
  void layer_begins(int layer);
  void layer_finished(int layer, bool last);
  void finish();
  void share_values();
  // With ZeRO-3, between iterations: gathers a layer's values, which stay until the next call. All replicas
  // of its stage call it.
  void gather_values(int layer);
  // After finish() or share_values(): throws unless the received values are valid.
  void settle() const;
  // The memory of each parameter's gradient, by name: of use for other things before begin_iteration(). Not
  // of those that take turns.
  std::map<std::string, at::Tensor> gradients() const;
  // Memory for gradients: the buffer, with ZeRO-2 the sums, and what is needed for reductions.
  int64_t gradient_bytes() const;
  // Frees the memory of the gradients: nothing can be summed afterwards. Requires that nothing is under way.
  void drop_gradients();

  // Where parameters are, and with whom this rank sums them, by a group's index in the plan's list: the
  // members with which it shares states, nullptr if the rank is not a member; with hybrid ZeRO those that
  // have the same states, else nullptr.
  const GradientLayout& layout() const { return layout_; }
  Communicator* group(std::size_t index) const { return groups_.at(index).sharing.get(); }
  Communicator* copies(std::size_t index) const { return groups_.at(index).copies.get(); }
  // The group of each of slices() that has copies: the first ones.
  std::vector<std::size_t> groups_of_slices() const;

  // The elements that this rank updates. Views of the values and of the gradients.
  std::vector<OptimizerSlice> slices() const;
  // Sum of the squares of the gradients, after finish(), such that the sums of all ranks add up to the
  // model's.
  double own_sum_of_squares() const;
  // The same by layer; the last is what the first and the last layer share.
  std::vector<double> own_sums_of_squares() const;
  // Sum of the squares of the pipeline's own gradients, of what no two layers share, such that the sums of
  // its ranks add up to the pipeline's: of all its microbatches together, or with ZeRO-2 of each. 0 with a
  // single pipeline.
  const std::vector<double>& own_unreduced_squares() const { return unreduced_squares_; }

 private:
  GradientSync(const Plan& plan, const RankLayout& layout, int rank, CommFactory& factory, Communicator* tp,
               const std::vector<Parameter*>& parameters, const std::vector<GradientGroup>& all_groups,
               Device& device);

  using PieceFunction = void (GradientSync::*)(const Part&, int64_t first, int64_t count);
  void start_bucket(std::size_t bucket, int microbatch);
  void reduce(std::size_t bucket, PieceFunction function);
  void start_empty_round();
  // ZeRO-2: the rounds in which this rank's pipeline adds nothing, until the next one in which it does.
  void start_empty_rounds();
  // Waits for the reduction under way, if there is one, and adds its result to the sums.
  void take_round();
  // The bucket of this layer if it is reduced in rounds.
  std::optional<std::size_t> bucket_in_rounds(int layer) const;
  void add_unreduced_squares(const GradientBucket& bucket, int microbatch);
  void sum_replicated(const GradientBucket& bucket);
  bool gathers() const;  // any values
  void make_groups(const std::vector<GradientGroup>& all_groups, int rank, int parts, CommFactory& factory);
  void make_parts();
  void move_values();
  void make_staging();
  void sum_piece(const Part& part, int64_t first, int64_t count);
  void sum_others(const Part& part, int64_t first, int64_t count);
  void sum_sums(const Part& part, int64_t first, int64_t count);
  // Sums own blocks over those that have copies of them.
  void sum_over_copies(const Part& part, char* own, std::size_t elements);
  void share_piece(const Part& part, int64_t first, int64_t count);
  FlatMemory gradient_memory() const { return {buffer_.flat(), buffer_.offsets()}; }
  FlatMemory value_memory() const { return {values_, value_places_.offsets}; }
  void broadcast_replicated(const FlatMemory& memory);
  OptimizerSlice slice(std::size_t i, int64_t first, const at::Tensor& value,
                       const at::Tensor& gradient) const;
  OptimizerSlice whole_slice(std::size_t i) const;
  std::vector<OptimizerSlice> own_slices() const;  // with ZeRO-1: part of what is reduced
  // The gradients that this rank answers for in sums over the model: work(layer, gradient).
  template <class Work>
  void for_each_own_gradient(const Work& work) const;

  const RankSlot slot_;
  Device& device_;
  Communicator* const tp_;
  const bool sharded_;  // ZeRO-1
  const bool sums_replicated_;
  const int num_layers_;
  GradientLayout layout_;
  const BucketPlaces places_, value_places_;
  const std::vector<GradientRound> rounds_;  // with ZeRO-2
  struct Group {
    std::unique_ptr<Communicator> sharing, copies;
  };
  std::vector<Group> groups_;  // by index of the plan's groups; nullptr = not a member
  // With hybrid ZeRO, are there several copies of the states; is this rank's the first one?
  const bool has_copies_, is_first_copy_;
  GradientBuffer buffer_;
  PartMemory memory_;
  // With ZeRO-2, of the buckets that are reduced in rounds: own blocks in order.
  at::Tensor sums_;
  at::Tensor values_;                               // with ZeRO-1
  at::Tensor own_values_;                           // with ZeRO-3, of gathered parts: own blocks in order
  std::vector<std::vector<std::size_t>> of_layer_;  // parameters of each layer
  std::vector<std::vector<Part>> parts_;            // by bucket
  std::size_t next_bucket_ = 0;                     // of those that are reduced once
  std::size_t next_round_ = 0;
  std::optional<std::size_t> under_way_;  // the bucket of the last round, until take_round()
  BackgroundWork::Point round_ends_;      // of it and of what follows
  at::Tensor zeros_;                      // if there are empty rounds
  bool measure_ = false;                  // in this iteration
  std::vector<double> unreduced_squares_;
  BackgroundWork work_;
  std::optional<ParameterGathers> gathers_;  // with ZeRO-3
};

}  // namespace sailor
