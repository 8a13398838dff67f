// Simulated annealing over plan templates: random changes, of one boundary or of the whole shape, are
// accepted if the plan is not worse by more than a decreasing threshold. It leaves the local optima of
// climb.h.
#pragma once

#include <cstdint>
#include <random>

#include "planner/plan/features.h"
#include "planner/search/native/scorer.h"

namespace sailor::native {

struct AnnealOptions {
  double warm = 0.08, cold = 0.002;  // thresholds at the beginning and the end, as a fraction of the value
  double fine_first = 0.2, fine_last = 0.6;  // fraction of the changes that keep the shape
  int64_t attempt_steps = 60;                // effort counted for a change, in addition to its score
};

// Walks from `from`, with the given value, until the given effort of the scorer is spent; returns the best
// template of the walk, with its value. Random numbers are the same on every machine.
std::pair<double, PlanTemplate> anneal(Scorer& scorer, const PlanFeatures& offered, PlanTemplate from,
                                       double value, int64_t until, std::mt19937_64& random,
                                       const AnnealOptions& options);

}  // namespace sailor::native
