// The search under the native cost model. Plan templates (plan_template.h) are enumerated by the pools that
// they use, cheapest first: one pool, then several in a pipeline, then pipelines of several pools; the best
// of each kind are improved (climb.h). Every plan is judged by the model behind simulate(), placement
// included.
//
// Effort is counted, not timed: results are the same on every machine, unless the time limit is reached,
// which the result says. Pure; deterministic.
#pragma once

#include "planner/search/problem/plan_options.h"
#include "planner/search/problem/search_result.h"

namespace sailor::native {

SearchResult search(const PlanningContext& context, const PlanOptions& options);

}  // namespace sailor::native
