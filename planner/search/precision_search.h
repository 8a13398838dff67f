// Search for a job that leaves the precision to its plans (training.precision: 16-bit). Plans whose GPU types
// all have the first precision are in it, the others in the fallback; both kinds compete for the objective.
#pragma once

#include <functional>

#include "planner/search/problem/plan_options.h"
#include "planner/search/problem/search_result.h"

namespace sailor {

using SearchEngine = std::function<SearchResult(const PlanningContext&, const PlanOptions&)>;

// Searches once in each precision that free GPUs call for, and keeps the best plans of both: the result is no
// worse than that of either search. Two searches share the limits on effort and time equally. With
// `keep_precision` the other one is only searched if no plan is possible in that.
// Requires a job with a fallback precision, and profiles in both.
SearchResult search_precisions(const PlanningContext& context, const PlanOptions& options,
                               const SearchEngine& engine);

}  // namespace sailor
