// A better layout near a given one: which replica runs in which zone and in which order the pipelines are.
// Simulated annealing over pipeline blocks with a fixed seed, then zone_assignment.h for what that misses;
// the same input gives the same output. The result keeps the limits and is never worse than the start.
#pragma once

#include <functional>

#include "planner/search/assignment/assignment.h"

namespace sailor {

Assignment improve_layout(const AssignmentProblem& problem, Assignment start, int steps,
                          const std::function<bool()>& expired);

}  // namespace sailor
