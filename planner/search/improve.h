// Local improvement of one plan under the true cost model: shift a layer over a boundary; in the full space
// also move a microbatch between pipelines, or drop a pipeline. Repeats while something helps. Deterministic.
#pragma once

#include <functional>

#include "planner/search/search.h"

namespace sailor {

// `value` is what to minimise; infinite for plans that are not allowed.
Plan improved(Plan plan, SearchSpace space, const std::function<double(const Plan&)>& value,
              const std::function<bool()>& expired);

}  // namespace sailor
