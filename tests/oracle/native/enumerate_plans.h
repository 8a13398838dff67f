// Every plan of a tiny problem under the native cost model, judged by simulate().
//
// A plan is a set of pipelines on free GPUs. Each pipeline is any sequence of TP groups on nodes, any layer
// split, any recomputation of each stage (or chunk) that plans may use, and any number of microbatches; the
// plan has any profiled microbatch size, any division of the microbatches, ZeRO-1 or not, and interleave 1, 2
// or 4. That covers pipelines of different shapes, and every placement.
//
// Skipped: plans that only differ in which GPUs of a node, or which of some equal nodes, are used; other
// orders of pipelines, which affect gradient reduction, of plans that are slower than the best by more than
// 10 %; ZeRO-1 with one pipeline. Not simulated, because a lower bound shows that they are no better than the
// best plan so far: a pipeline takes at least the computation of its stages, the prediction of the pipeline
// alone, and the fastest possible gradient reduction after its last backward; all GPUs together have a
// maximum computation rate. Shares no code with planner/search.
#pragma once

#include "tests/bench/native/judge.h"

namespace sailor::oracle {

// No ZeRO-3, with which a pipeline's computation depends on the other pipelines; no hybrid ZeRO, split
// backwards, offloaded states and unlike microbatches, of which there are too many.
inline PlanFeatures enumerated_features() {
  PlanFeatures features = trainable_features();
  features.erase(PlanFeature::zero3);
  features.erase(PlanFeature::hybrid_zero);
  features.erase(PlanFeature::split_backward);
  features.erase(PlanFeature::offload);
  features.erase(PlanFeature::unlike_microbatches);
  return features;
}

struct PlanEnumeration {
  std::optional<Plan> best;  // nothing: none is faster than `known_s`
  double best_s = 0;
  int64_t simulations = 0;
  bool complete = true;  // false: the limit was reached
};

// Searches for plans faster than `known_s`, which may be infinite; at most about `most_simulations`.
PlanEnumeration enumerate_plans(bench::Judge& judge, double known_s, int64_t most_simulations);

}  // namespace sailor::oracle
