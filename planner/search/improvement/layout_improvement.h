// A better layout near a given one: which replica runs in which zone, in which order the pipelines stand, and
// where the layers are cut. Simulated annealing over pipeline blocks with a fixed seed, then
// zone_assignment.h for what that misses, then steps over the cut; the same input gives the same output. The
// result keeps the limits and is never worse than the start.
#pragma once

#include <functional>

#include "planner/search/assignment/assignment.h"

namespace sailor {

Assignment improve_layout(const AssignmentProblem& problem, Assignment start, int steps,
                          const std::function<bool()>& expired);

}  // namespace sailor
