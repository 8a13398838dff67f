// One measured iteration as a trace for chrome://tracing and Perfetto. Pure.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "planner/plan/plan.h"
#include "trainer/control/step_trace.h"

namespace sailor {

// A process per pipeline, a thread per rank, `tasks` by rank of the plan. Time 0 is the first task's start.
// Names: F3 and B3 are the forward and backward of microbatch 3 of the pipeline, `wait 3` the wait for its
// activation or gradient. The clocks of different nodes are not aligned.
std::string rank_trace(const Plan& plan, const std::map<int, std::vector<TracedTask>>& tasks);

}  // namespace sailor
