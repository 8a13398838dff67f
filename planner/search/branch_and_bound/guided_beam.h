// Pipelines that supplies suffice for, stage by stage from the last, led by priced cuts: of all partial
// pipelines that start at one layer those few are followed that take least together with the priced rest.
// Mixed stages are split over supplies, the cheapest first. Where there are placement classes of single
// zones, a stage that has room in a zone is in one. Deterministic.
#pragma once

#include "planner/search/branch_and_bound/priced_cuts.h"
#include "planner/search/costs/partial_pipeline.h"

namespace sailor {

struct BeamProblem {
  ClassCosts& costs;
  const StageSync& sync;
  int replicas = 1;
  double rounds = 1;  // microbatches of a pipeline
  // The slowest stage and the longest sum of gradients count as at least this.
  double least_bottleneck_s = 0, least_sync_s = 0;
  // Regions that stages have to be in, and what each but one of them adds, at least.
  uint64_t regions = 0;
  double crossing_s = 0;
  bool mixed = true;  // several types in a stage, even where one zone has enough of the slowest
};

// Pipeline templates faster than `accepted_s`, best first, at most `most`; `cuts` has just been solved at
// `prices`.
std::vector<PipelineTemplate> guided_beam(const BeamProblem& problem, PricedCuts& cuts,
                                          const std::vector<double>& prices, double accepted_s, size_t width,
                                          size_t most);

}  // namespace sailor
