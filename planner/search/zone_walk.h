// The zones of a cut's replicas by limits on the slowest links (column_limits.h): for given limits it is a
// question of yes or no whether the pipelines can be arranged (column_walk.h). Boxes of limits are searched
// by branch and bound, best first; a linear program says which of them hold no arrangement.
//
// Finds what improve_layout's single moves do not where zones are full. Arrangements that alternate between
// zones many times are left to those. Pure, deterministic, of limited effort; never worse than the start.
#pragma once

#include <functional>

#include "planner/search/realize.h"

namespace sailor {

// For throughput; the start of any other objective is returned as it is.
Realized walk_zones(const RealizeProblem& problem, Realized start, const std::function<bool()>& expired);

}  // namespace sailor
