// Plans of frameworks that know one cut of the model, one TP degree and one kind of node: P stages x D
// replicas x TP, ranks numbered in the order that the framework uses, nodes filled in the order of ranks.
#pragma once

#include <string>
#include <vector>

#include "planner/plan/plan.h"

namespace sailor::convert {

// Which dimension varies fastest over the ranks; TP always does so first.
enum class RankOrder { tp_dp_pp, tp_pp_dp };

struct UniformPlan {
  std::string model;
  int pp = 1, dp = 1, tp = 1;
  int interleave = 1;        // model chunks per rank
  std::vector<int> cuts;     // pp x interleave + 1 layer indices, 0 first, number of layers last
  int microbatch = 1;        // sequences
  int64_t global_batch = 1;  // sequences
  std::string gpu_type;
  int gpus_per_node = 8;
  RankOrder order = RankOrder::tp_dp_pp;
  std::string recompute = "none";
  bool zero1 = false;

  Plan plan() const;
};

// Blocks dealt evenly to `parts` chunks, the first chunks one more when they do not divide; the embedding
// goes to the first and the head to the last.
std::vector<int> even_cuts(int blocks, int parts);

}  // namespace sailor::convert
