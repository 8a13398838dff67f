// ZeRO-3: the values of sharded parameters, of which a rank holds its own blocks alone, as it holds its
// slices of the optimizer's states. All replicas of a stage gather each layer before its forward and before
// its backward, in every microbatch, into one of two areas of memory that the layers use in turn: while one
// is computed, the next one is gathered. A layer's parameters always have the same place in an area, so what
// a forward keeps of them for its backward is right again when they have been gathered again.
//
// All ranks gather in the common order (common_order.h), also for microbatches that their pipeline does not
// have: of these they only see the gathers, and the sums of gradients that follow them.
//
//     gathers.begin(...);
//     gathers.layer_begins(layer);   // now its parameters have their values
//     gathers.layer_ends();          // no longer, once other layers are gathered
//
// Functions throw CommError. One thread per object.
#pragma once

#include <ATen/ATen.h>

#include <array>
#include <functional>
#include <vector>

#include "planner/plan/plan.h"
#include "planner/plan/rank_layout.h"
#include "trainer/comm/background_work.h"
#include "trainer/parallel/gradient_buckets.h"
#include "trainer/parallel/gradient_rounds.h"
#include "trainer/parallel/part_memory.h"

namespace sailor {

class ParameterGathers {
 public:
  // `parts` by bucket, of which those with a place in `own_values` are gathered into the areas of `values`.
  // `empty_round` starts the next round of gradients to which the rank adds nothing. References from `parts`
  // on outlive the object.
  ParameterGathers(const Plan& plan, const RankSlot& slot, const GradientLayout& layout,
                   const std::vector<std::vector<Part>>& parts, const BucketPlaces& places,
                   const PartMemory& memory, FlatMemory values, at::Tensor own_values, BackgroundWork& work,
                   Device& device, std::function<void()> empty_round);

  // Before an iteration, or before a forward of the microbatches for which `computes` is true. Own values may
  // have changed since the last one.
  void begin_iteration();
  void begin_evaluation(const std::function<bool(int)>& computes);
  // For each layer in the order of the schedule, when its forward or backward begins, and when it has ended
  // and its gradients are being reduced.
  void layer_begins(int layer);
  void layer_ends(int layer);
  // Have all layers been computed?
  bool ended() const { return next_ == uses_.size(); }

  // Between iterations: gathers a layer, which all replicas of its stage do.
  void gather_now(int layer);

 private:
  struct Use {
    std::size_t bucket;
    int layer;
    bool backward;
    int microbatch;  // of this rank's pipeline; -1: only other replicas compute it
  };
  void list_uses(const Plan& plan, const RankSlot& slot, const GradientLayout& layout);
  void begin();
  bool has_use(int layer) const;
  // Starts gathering for use i, unless that is done already.
  void fetch(std::size_t i);
  void fetch_into_free_area(std::size_t i);
  void pass_others_uses();
  void gather_bucket(std::size_t bucket);
  void gather(std::size_t bucket) const;

  const std::vector<std::vector<Part>>& parts_;
  const BucketPlaces& places_;
  const PartMemory& memory_;
  const FlatMemory values_;
  const at::Tensor own_values_;
  BackgroundWork& work_;
  Device& device_;
  const std::function<void()> empty_round_;

  std::vector<Use> of_iteration_;
  std::vector<Use> uses_;               // of what runs now
  std::size_t next_ = 0;                // the use that is computed, or will be
  std::size_t fetched_ = 0;             // uses
  std::array<int, 2> content_{-1, -1};  // bucket in each area
  std::array<BackgroundWork::Point, 2> ready_;
};

}  // namespace sailor
