// The search under the native cost model. Templates of plans (plan_template.h) are listed by the pools that
// they use, cheap questions first: one pool, then several in a pipeline, then pipelines of several pools side
// by side; the best of each kind are improved (climb.h). Every plan that is thought of is judged by the model
// that simulate() is made of, placement included.
//
// Effort is counted, not timed: the same question has the same answer on every machine, unless the time limit
// strikes, which the result says. Pure; deterministic.
#pragma once

#include "planner/search/problem/plan_options.h"
#include "planner/search/problem/search_result.h"

namespace sailor::native {

SearchResult search(const PlanningContext& context, const PlanOptions& options);

}  // namespace sailor::native
