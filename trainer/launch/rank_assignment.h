// Maps launched processes to ranks of the plan. The launcher numbers processes in its own order, so the
// mapping uses the node of each process. Pure: every process computes the same result from the same exchange.
#pragma once

#include <string>
#include <vector>

#include "planner/plan/plan.h"

namespace sailor {

// `nodes` holds the node of every process, in the launcher's order. Returns the plan rank of each: the k-th
// process on a node takes the k-th rank that the plan puts there. Throws std::runtime_error naming the node
// whose number of processes differs from the plan's.
std::vector<int> assign_ranks(const Plan& plan, const std::vector<std::string>& nodes);

}  // namespace sailor
