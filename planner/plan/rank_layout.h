// Which trainer rank sits where in a plan. Ranks are numbered pipeline by pipeline, group of GPUs by group of
// GPUs (a stage, or the interleaved chunks of one), GPU by GPU (replica_shape.h); every part of the project
// that needs a rank number takes it from here. Pure.
#pragma once

#include <string>
#include <vector>

#include "planner/plan/plan.h"

namespace sailor {

struct RankSlot {
  int rank = 0;
  int pipeline = 0;
  int stage = 0;    // within its pipeline; with interleaved chunks the group of GPUs, whose first one it is
  int tp_rank = 0;  // within its TP group: the part of the weights that it holds
  ReplicaShape shape;  // of its stage
  std::string node;    // empty when the plan is not placed
  int gpu = -1;        // index on the node; -1 when not placed
};

class RankLayout {
 public:
  explicit RankLayout(const Plan& plan);

  const std::vector<RankSlot>& slots() const { return slots_; }  // by rank
  int size() const { return static_cast<int>(slots_.size()); }
  // Rank of the first GPU of a stage (of any chunk); its replica is [base, base + shape.gpus()).
  int base(int pipeline, int stage) const { return bases_[pipeline][stage]; }
  // Ranks on a node, in ascending rank order.
  std::vector<int> ranks_on(const std::string& node) const;
  // Nodes in the order of their lowest rank.
  std::vector<std::string> nodes() const;

 private:
  std::vector<RankSlot> slots_;
  std::vector<std::vector<int>> bases_;
};

// A run of consecutive sequences of the global batch: microbatch `index` of pipeline `pipeline`.
struct MicrobatchRange {
  int64_t first_sequence = 0;
  int sequences = 0;  // plan.microbatch, or less for the very last one
};
// The sequences of one microbatch; pipelines take consecutive runs in plan order.
MicrobatchRange microbatch_range(const Plan& plan, int pipeline, int index);

}  // namespace sailor
