// The native cost model: one iteration as our own trainer runs it. Each pipeline is an exact 1F1B event
// timeline with its own number of microbatches; gradients are summed after a rank's last backward (the
// trainer does not overlap the two), layer group by layer group in one global order; then the optimizer
// steps.
#pragma once

#include "planner/simulator/lookup.h"
#include "planner/simulator/memory.h"

namespace sailor::native {

// A message of `elements` per sequence between two neighbouring stages, for one microbatch. Between TP groups
// of different degrees the trainer scatters and gathers; see scatter_gather_s() for the approximation.
double message_s(const PlanningContext& context, const PlanStage& from, const PlanStage& to, int64_t elements,
                 int microbatch);

// Elements of one sequence that cross the boundary before `layer`.
inline int64_t boundary_elements(const std::vector<LayerSizes>& sizes, int layer) {
  return sizes.at(static_cast<size_t>(layer) - 1).output_elements;
}

Prediction simulate(const PlanningContext& context, const Plan& plan);

}  // namespace sailor::native
