// What keeps a plan from being better: the constraints that bind, by what loosening them gains. Pure.
#pragma once

#include <string>
#include <vector>

#include "planner/explain/what_if.h"

namespace sailor {

struct Binding {
  std::string what;  // one line: the constraint, and what it would bring to loosen it
  double gain = 0;   // as WhatIf::gain
};

// Largest gain first; what gains less than 0.5 % does not bind. Besides the `answers` with more nodes or
// looser limits, the batch: microbatches that the pipelines cannot share evenly; and, of a plan that was
// given, the plan itself, where planning anew is better: then the gains of the rest come on top of that.
std::vector<Binding> binding_constraints(const PlanningContext& context, CostModel model,
                                         const Candidate& chosen, const std::vector<WhatIf>& answers);

}  // namespace sailor
