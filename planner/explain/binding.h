// The bottlenecks of a plan: constraints, ordered by the gain from relaxing them. Pure.
#pragma once

#include <string>
#include <vector>

#include "planner/explain/what_if.h"

namespace sailor {

struct Binding {
  std::string what;  // one line: the constraint, and the gain from relaxing it
  double gain = 0;   // see WhatIf::gain
};

// Largest gain first; gains below 0.5 % are dropped. In addition to the `answers` with more nodes or looser
// limits, covers the global batch (microbatches that the pipelines cannot divide evenly) and, for a given
// plan, the plan itself when the planner's own choice is better. The gains of the other constraints are then
// on top of that.
std::vector<Binding> binding_constraints(const PlanningContext& context, CostModel model,
                                         const Candidate& chosen, const std::vector<WhatIf>& answers);

}  // namespace sailor
