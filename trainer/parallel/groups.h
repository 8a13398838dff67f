// The groups of ranks that reduce gradients, when replicas of a layer may have different TP degrees.
//
// Let L be the least common multiple of the TP degrees of a layer's replicas. Every sharded parameter is
// divided into L equal sub-shards of rows; in a replica of TP degree T, TP rank k / (L / T) holds sub-shard
// k. The owners of a sub-shard, in every pipeline one per context-parallel rank of its stage, in plan order,
// form a group; distinct owner lists are distinct groups. Replicated parameters are reduced by TP ranks 0,
// which own sub-shard 0.
//
// A tied embedding is a matrix that the first and the last layer hold. It counts as a separate layer, one
// past the last, whose replicas are the first and the last stage of every pipeline (once if they are the
// same): all of them reduce its gradient together. Pure.
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
  std::vector<int> ranks;
  std::vector<SubShard>
      shards;  // that this group reduces, by layer and index; index 0 includes the replicated parameters
};

// All groups of the plan with more than one rank, in one global order, which every rank must follow.
std::vector<GradientGroup> gradient_groups(const Plan& plan, const RankLayout& layout,
                                           bool tied_embeddings = false);

// Rows [first, first + second) of the `held` rows of part `part` of `parts` that are part of a sub-shard; {0,
// 0} if it has none. Requires that the held rows are divisible into the rank's sub-shards.
std::pair<int64_t, int64_t> rows_of(const SubShard& shard, int part, int parts, int64_t held);

// Index of the stage of a pipeline that holds a layer.
int stage_of(const PlanPipeline& pipeline, int layer);

}  // namespace sailor
