// Which ranks can hold the states of two plans while an elastic job changes from one to the other. Pure.
#pragma once

#include <set>

#include "planner/plan/plan.h"
#include "planner/simulator/simulate.h"

namespace sailor {

// The ranks of the plan `to` whose GPU has no memory for its state under `from` besides what `to` needs
// (simulator/change_memory.h). Both plans are placed. Throws what simulate() throws.
std::set<int> ranks_without_room(const PlanningContext& context, const Plan& from, const Plan& to);

}  // namespace sailor
