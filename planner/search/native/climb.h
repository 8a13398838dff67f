// Local search over templates: any single change (a boundary, a degree, a number of pipelines, the placement,
// ...) that improves the value is accepted, until none does. Layers and microbatches are divided again after
// changes that need it.
#pragma once

#include "planner/plan/features.h"
#include "planner/search/native/scorer.h"

namespace sailor::native {

// Chunks of layers per stage that changes try.
inline constexpr int kInterleavings[] = {1, 2, 3, 4, 6, 8};

// Replaces `from`, with the given value, by the best template reached; returns its value.
double climb(Scorer& scorer, const PlanFeatures& offered, PlanTemplate& from, double value);

// Block sizes of the placement to try.
std::vector<int> blocks_of(const Space& space, const PlanTemplate& of);

}  // namespace sailor::native
