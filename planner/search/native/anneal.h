// Simulated annealing over plan templates: changes drawn by chance, of one boundary or of the whole shape,
// taken when the plan is not worse by more than a threshold that shrinks. It leaves local optima that climb.h
// ends in.
#pragma once

#include <cstdint>
#include <random>

#include "planner/plan/features.h"
#include "planner/search/native/scorer.h"

namespace sailor::native {

struct AnnealOptions {
  double warm = 0.08, cold = 0.002;  // thresholds at the beginning and the end, as a part of the value
  double fine_first = 0.2, fine_last = 0.6;  // part of the changes that leave the shape as it is
  int64_t attempt_steps = 60;                // effort that a change counts as, beyond its score
};

// Walks from `from`, whose value is given, until so much effort of the scorer is spent; returns the best
// template of the walk, with its value. Draws the same on every machine.
std::pair<double, PlanTemplate> anneal(Scorer& scorer, const PlanFeatures& offered, PlanTemplate from,
                                       double value, int64_t until, std::mt19937_64& random,
                                       const AnnealOptions& options);

}  // namespace sailor::native
