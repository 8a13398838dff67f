// A plan in numbers, for predicting many plans: kinds of stages instead of names, nodes by number. Value
// types. The order of pipelines and the meaning of interleave are those of Plan.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "planner/plan/plan.h"
#include "planner/simulator/stage_kinds.h"

namespace sailor::native {

struct CompactStage {
  int kind = 0;  // in StageKinds
  int first_layer = 0, end_layer = 0;
  StageRecompute recompute{};
  int node = -1;  // numbered from 0; -1 = not placed: on a node of its own
  int weight_delay = kWholeBackward;
  Offload offload = Offload::none;

  bool operator==(const CompactStage&) const = default;
};

struct CompactPlan {
  Zero zero = Zero::none;
  int zero_group = 0;  // pipelines that share one copy of the states; 0: all
  int interleave = 1;
  bool sequence_parallel = false;    // kinds with a TP degree above 1 split tokens
  bool splits_context = false;       // kinds may have CP degrees above 1
  int nodes = 0;                     // stages are on nodes 0 to nodes - 1
  std::vector<CompactStage> stages;  // of the first pipeline, then of the second, ...
  std::vector<int> first;            // first stage of each pipeline; one more entry for the end
  std::vector<int> microbatches;     // by pipeline
  std::vector<int> microbatch;       // by pipeline: sequences of each
  // By node, nothing for those that the snapshot does not have. Null: none of them is known.
  std::shared_ptr<const std::vector<std::optional<NodeBill>>> bills;

  int pipelines() const { return static_cast<int>(microbatches.size()); }
  // GPU groups of a pipeline; each has `interleave` of its stages.
  size_t groups(int pipeline) const { return of(pipeline).size() / static_cast<size_t>(interleave); }
  std::span<const CompactStage> of(int pipeline) const {
    const size_t begin = static_cast<size_t>(first[static_cast<size_t>(pipeline)]);
    return {stages.data() + begin, static_cast<size_t>(first[static_cast<size_t>(pipeline) + 1]) - begin};
  }
};

// Are both placed, and on one node?
inline bool on_one_node(const CompactStage& a, const CompactStage& b) {
  return a.node >= 0 && a.node == b.node;
}

// Number of the group of pipelines that share states.
inline int zero_group_of(const CompactPlan& plan, int pipeline) {
  return plan.zero_group > 0 ? pipeline / plan.zero_group : 0;
}
inline int num_zero_groups(const CompactPlan& plan) {
  return plan.zero_group > 0 ? plan.pipelines() / plan.zero_group : 1;
}
// GPUs of different replicas or CP ranks that share the sums of a layer's gradients, in a group of pipelines,
// the fewest of layers [first, end).
int sharers(const CompactPlan& plan, const StageKinds& kinds, int first_layer, int end_layer);
// Has any layer more than one?
bool has_replicas(const CompactPlan& plan, const StageKinds& kinds);
// What they shard: as the plan says, or the framework for every plan.
Zero zero_of(const CompactPlan& plan, const StageKinds& kinds);

// Numbers the kinds of the plan. Throws InputError when one is not profiled, or a stage offloads at an
// unknown rate.
CompactPlan compact(const Plan& plan, StageKinds& kinds);

}  // namespace sailor::native
