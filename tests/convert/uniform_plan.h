// Plans of frameworks with one layer split, one TP and one CP degree, and one kind of node: P stages x D
// replicas x CP x TP, ranks numbered in the framework's order, nodes filled in rank order.
#pragma once

#include <string>
#include <vector>

#include "planner/plan/plan.h"

namespace sailor::convert {

// The dimension that varies fastest over the ranks, after TP and CP.
enum class RankOrder { tp_dp_pp, tp_pp_dp };

struct UniformPlan {
  std::string model;
  int pp = 1, dp = 1, cp = 1, tp = 1;
  int interleave = 1;        // model chunks per rank
  std::vector<int> cuts;     // pp x interleave + 1 layer indices, 0 first, number of layers last
  int microbatch = 1;        // sequences
  int64_t global_batch = 1;  // sequences
  std::string gpu_type;
  int gpus_per_node = 8;
  RankOrder order = RankOrder::tp_dp_pp;
  Recompute recompute = Recompute::none;
  Zero zero = Zero::none;

  Plan plan() const;
};

// Blocks divided evenly among `parts` chunks, with one more in the first chunks if necessary; the first also
// has the embedding and the last the head.
std::vector<int> even_cuts(int blocks, int parts);

}  // namespace sailor::convert
