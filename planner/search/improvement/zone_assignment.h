// The zones of a cut's replicas by limits on the slowest links (link_limits.h): for given limits it is a
// question of yes or no whether the pipelines can be arranged (zone_sequence.h). Boxes of limits are searched
// by branch and bound, best first; a linear program says which of them hold no arrangement.
//
// Finds what improve_layout's single moves do not where zones are full. Arrangements that alternate between
// zones many times are left to those. Pure, deterministic, of limited effort; never worse than the start.
#pragma once

#include <functional>

#include "planner/search/assignment/assignment.h"

namespace sailor {

// For throughput; the start of any other objective is returned as it is.
Assignment assign_zones(const AssignmentProblem& problem, Assignment start,
                        const std::function<bool()>& expired);

}  // namespace sailor
