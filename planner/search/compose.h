// Plans whose pipelines differ: each pipeline its own stages, GPU types and TP degrees, and as many
// microbatches as its speed earns.
//
// First the good shapes of one pipeline, by what they use; then, for a target time, the set of shapes that
// together push the most microbatches through within the GPUs (a knapsack, exact while its table is small),
// bisecting the target. Times are sums, not the timeline: the caller predicts what comes out. Deterministic.
#pragma once

#include <functional>
#include <vector>

#include "planner/plan/plan.h"
#include "planner/search/stage_costs.h"

namespace sailor {

std::vector<Plan> composed_plans(const PlanningContext& context, const Resources& resources,
                                 const StageCosts& costs, const std::function<bool()>& expired);

}  // namespace sailor
