// Local improvement of templates: whatever changes one thing (a boundary, a degree, a number of pipelines,
// the placement, ...) and pays is taken, until nothing pays. Cuts and shares are made again after changes
// that ask for it.
#pragma once

#include "planner/plan/features.h"
#include "planner/search/native/scorer.h"

namespace sailor::native {

// The best template reached from `from`, whose value is given; returns its value.
double climb(Scorer& scorer, const PlanFeatures& offered, PlanTemplate& from, double value);

// Numbers of pipelines to place together, to try.
std::vector<int> blocks_of(const Space& space, const PlanTemplate& of);

}  // namespace sailor::native
