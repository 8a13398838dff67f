// Maps trainer ranks to positions in a plan. Ranks are numbered pipeline by pipeline, group of GPUs by group
// of GPUs (a stage, or the interleaved chunks of one), GPU by GPU (replica_shape.h); this is the only
// definition of rank numbers. Pure.
#pragma once

#include <string>
#include <vector>

#include "planner/plan/plan.h"

namespace sailor {

struct RankSlot {
  int rank = 0;
  int pipeline = 0;
  int stage = 0;       // in its pipeline; with interleaved chunks: the group of GPUs = its first stage
  int tp_rank = 0;     // in its TP group: its part of the weights
  int cp_rank = 0;     // its TP group's number in the replica: its part of the tokens
  ReplicaShape shape;  // of its stage
  std::string node;    // empty if the plan is not placed
  int gpu = -1;        // index on the node; -1 if not placed
};

inline bool is_first_of_stage(const RankSlot& slot) {
  return slot.tp_rank == 0 && slot.cp_rank == 0;
}

// What the rank computes; with interleaved chunks the first of them.
inline const PlanStage& stage_of(const Plan& plan, const RankSlot& slot) {
  return plan.pipelines[static_cast<size_t>(slot.pipeline)].stages[static_cast<size_t>(slot.stage)];
}

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

// A range of consecutive sequences of the global batch: microbatch `index` of pipeline `pipeline`.
struct MicrobatchRange {
  int64_t first_sequence = 0;
  int sequences = 0;  // microbatch_of() its pipeline; the very last one may have fewer
};
// The sequences of one microbatch; pipelines take consecutive ranges in plan order.
MicrobatchRange microbatch_range(const Plan& plan, int pipeline, int index);

}  // namespace sailor
