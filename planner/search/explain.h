// Why nothing was found, and the smallest change that would help: asked by replanning under relaxed
// conditions. Pure.
#pragma once

#include <string>

#include "planner/search/search.h"

namespace sailor {

// One line. `result` is the infeasible outcome. Costs a few short searches.
std::string explain_infeasible(const PlanningContext& context, const PlanOptions& options,
                               const SearchResult& result);

}  // namespace sailor
