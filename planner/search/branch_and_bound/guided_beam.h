// A beam search, stage by stage from the last, for pipelines within the supplies: of all partial pipelines
// that start at one layer, it keeps the few with the least time including the priced rest. Mixed stages are
// divided over supplies, the cheapest first. With placement classes of single zones, a stage that fits into a
// zone is in one. Deterministic.
#pragma once

#include "planner/search/branch_and_bound/priced_cuts.h"
#include "planner/search/costs/partial_pipeline.h"

namespace sailor {

struct BeamProblem {
  ClassCosts& costs;
  const StageSync& sync;
  int replicas = 1;
  double rounds = 1;  // microbatches of a pipeline
  // Lower bounds on the slowest stage and the longest gradient reduction.
  double least_bottleneck_s = 0, least_sync_s = 0;
  // Regions that stages must be in, and the minimum additional time of each but one of them.
  uint64_t regions = 0;
  double crossing_s = 0;
  bool mixed = true;  // several types in a stage, even if one zone has enough of the slowest
};

// Pipeline templates faster than `accepted_s`, best first, at most `most`. `cuts` must have been solved at
// `prices`.
std::vector<PipelineTemplate> guided_beam(const BeamProblem& problem, PricedCuts& cuts,
                                          const std::vector<double>& prices, double accepted_s, size_t width,
                                          size_t most);

}  // namespace sailor
