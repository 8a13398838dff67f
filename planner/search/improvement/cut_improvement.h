// Where the layers are cut, around a given layout: shifts single boundaries by a few layers for as long as
// that helps, replicas as they are. Pure; the result keeps the limits and is never worse than the start.
#pragma once

#include "planner/search/assignment/assignment.h"

namespace sailor {

// Infinite when the limits are not met.
double allowed_value(const Goal& goal, const LayoutValue& value);

Assignment improve_cut(const AssignmentProblem& problem, Assignment start);

}  // namespace sailor
