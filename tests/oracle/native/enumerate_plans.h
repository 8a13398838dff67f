// Every plan of a tiny problem under the native cost model, judged by simulate().
//
// A plan is a set of pipelines on free GPUs. Each pipeline is any sequence of TP groups on nodes, any cut of
// the layers, any recomputation of each stage (or chunk) that plans may have, and any number of microbatches;
// the plan has any microbatch size that is profiled, any sharing of the microbatches, ZeRO-1 or not, and
// interleave 1, 2 or 4. That covers pipelines of unlike shapes, and every placement.
//
// Left out: plans that differ only in which GPUs of a node, or which of some equal nodes, are used; other
// orders of pipelines, which gradient sums follow, of plans that are slower than the best by more than 10 %;
// ZeRO-1 with one pipeline. Not simulated, because a lower bound says that they are no better than the best
// plan so far: a pipeline takes at least what its stages compute, what simulate() says of the pipeline alone,
// and what the fastest possible gradient sums take from its last backward on; all GPUs together compute at
// most so much per second. Shares no code with planner/search.
#pragma once

#include "tests/bench/native/judge.h"

namespace sailor::oracle {

struct PlanEnumeration {
  std::optional<Plan> best;  // nothing: none is faster than `known_s`
  double best_s = 0;
  int64_t simulations = 0;
  bool complete = true;  // false: there were more plans than the limit allowed
};

// Looks for plans faster than `known_s`, which may be infinite; at most about `most_simulations`.
PlanEnumeration enumerate_plans(bench::Judge& judge, double known_s, int64_t most_simulations);

}  // namespace sailor::oracle
