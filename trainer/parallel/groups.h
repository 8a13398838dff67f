// Which ranks add up the gradients of what, when replicas of a layer may have different TP degrees.
//
// Let L be the least common multiple of the TP degrees of a layer's replicas. Every sharded parameter falls
// into L equal sub-shards of rows; in a replica of TP degree T, sub-shard k is held by TP rank k / (L / T).
// The owners of a sub-shard, one per pipeline in plan order, form a group; distinct owner lists are distinct
// groups. Replicated parameters are added up by the TP ranks 0, which are the owners of sub-shard 0.
//
// A tied embedding is a matrix that the first and the last layer hold. It counts as a layer of its own, one
// past the last, whose replicas are the first and the last stage of every pipeline (once when they are the
// same): what each of them adds to its gradient is summed with all others. Pure.
#pragma once

#include <utility>
#include <vector>

#include "planner/plan/plan.h"
#include "planner/plan/rank_layout.h"

namespace sailor {

struct SubShard {
  int layer = 0;
  int index = 0;  // 0 <= index < count
  int count = 1;  // L of that layer
};

struct GradientGroup {
  std::vector<int> ranks;  // one per pipeline, or two
  std::vector<SubShard>
      shards;  // that this group adds up, by layer and index; index 0 brings the replicated parameters along
};

// All groups of the plan with more than one rank, in one global order, which every rank must follow.
std::vector<GradientGroup> gradient_groups(const Plan& plan, const RankLayout& layout,
                                           bool tied_embeddings = false);

// Rows [first, first + second) of the `held` rows of TP rank `tp_rank` of `tp` that make up a sub-shard; {0,
// 0} when it holds none of it. Requires that the held rows divide into the rank's sub-shards.
std::pair<int64_t, int64_t> rows_of(const SubShard& shard, int tp_rank, int tp, int64_t held);

// Index of the stage of a pipeline that holds a layer.
int stage_of(const PlanPipeline& pipeline, int layer);

}  // namespace sailor
