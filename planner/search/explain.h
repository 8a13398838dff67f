// Why no plan was found, and the smallest change that helps: searches again with relaxed limits. Pure.
#pragma once

#include <string>

#include "planner/search/search.h"

namespace sailor {

// One line. `result` is the infeasible result. Costs a few short searches.
std::string explain_infeasible(const PlanningContext& context, const PlanOptions& options,
                               const SearchResult& result);

}  // namespace sailor
