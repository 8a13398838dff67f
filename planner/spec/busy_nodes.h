// Text about nodes that other jobs use now: number and type, state, and when they become free. Pure.
#pragma once

#include <string>
#include <vector>

#include "planner/spec/snapshot.h"

namespace sailor {

// `2 nodes of type A (1 in use, 1 powered down) and 1 of type B (in use); the first comes free within 35 min,
// all within 2 h`. Requires at least one node.
std::string busy_nodes_text(const std::vector<BusyNode>& nodes);

// What to do to get them: the end of a line about busy nodes.
inline constexpr char kHowToWait[] = "wait for them with --sailor-wait=nodes";

}  // namespace sailor
