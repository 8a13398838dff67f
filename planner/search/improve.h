// Local improvement of one plan under the true cost model, by the features that the search offers: shift a
// layer over a boundary, move microbatches between kinds of pipelines, drop a pipeline, recompute a stage or
// stop it, share optimizer states or not. Repeats while something helps. Deterministic.
#pragma once

#include <functional>

#include "planner/search/search.h"

namespace sailor {

// `value` is what to minimise; infinite for plans that are not allowed. Without unlike cuts a layer moves in
// all pipelines; without unlike shares all pipelines keep theirs.
Plan improved(Plan plan, const PlanFeatures& offered, const std::function<double(const Plan&)>& value,
              const std::function<bool()>& expired);

}  // namespace sailor
