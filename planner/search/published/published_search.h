// The search under the published cost model, the formulas of the Sailor paper: placement classes instead of
// mixes of GPUs (placement_classes.h), a dynamic program over pipeline templates (template_search.h) or, with
// many classes, branch and bound (branch_and_bound.h), then the assignment of GPUs to templates
// (assignment.h). Pure; deterministic unless the time limit is reached, which the result says.
#pragma once

#include "planner/search/problem/plan_options.h"
#include "planner/search/problem/search_result.h"

namespace sailor {

// Throws InputError when the job names something that the snapshot does not have.
SearchResult search_published(const PlanningContext& context, const PlanOptions& options);

}  // namespace sailor
