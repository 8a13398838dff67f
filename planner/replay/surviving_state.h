// Whether the ranks that are left of a plan hold the whole state of training among them. Pure.
#pragma once

#include "planner/plan/plan.h"
#include "planner/replay/trace_cluster.h"

namespace sailor {

// Whether the plan, which is placed, runs on one of these GPUs.
bool uses_any(const Plan& plan, const LostGpus& gpus);

// Every layer is held by each pipeline, cut into as many equal shards as the TP degree of its stage; with
// ZeRO-1 a rank holds its part of the optimizer's state alone, wherever there are several pipelines.
bool holds_whole_state(const Plan& plan, const LostGpus& lost);

}  // namespace sailor
