// How much of a prediction rests on links without a measurement. Pure.
#pragma once

#include "planner/plan/plan.h"
#include "planner/simulator/simulate.h"

namespace sailor {

// The part of the plan's iteration, 0 to 1, that it would save if links without a measurement took no time.
// 0 under the published model. Costs one prediction.
double assumed_links_share(const PlanningContext& context, const Plan& plan, const Prediction& prediction,
                           CostModel cost_model);

}  // namespace sailor
