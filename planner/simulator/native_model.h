// The native cost model: one iteration as the context's framework runs it, by default our own trainer. Each
// pipeline is an exact event timeline of its schedule with its own number of microbatches; gradients are
// reduced by layer group in one global order; then the optimizer steps. iteration_model.h computes the times;
// this file reports them for every stage by name. Pure.
#pragma once

#include <vector>

#include "planner/plan/plan.h"
#include "planner/simulator/prediction.h"
#include "planner/simulator/simulate.h"
#include "planner/simulator/timeline.h"

namespace sailor::native {

Prediction simulate(const PlanningContext& context, const Plan& plan);
// The same, and every pipeline's timeline with its events.
Prediction simulate(const PlanningContext& context, const Plan& plan, std::vector<Timeline>& timelines);

}  // namespace sailor::native
