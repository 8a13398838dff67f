// Whether the remaining ranks of a plan have the complete training state. Pure.
#pragma once

#include "planner/plan/plan.h"
#include "planner/replay/trace_cluster.h"

namespace sailor {

// Does the plan, which is placed, use one of these GPUs?
bool uses_any(const Plan& plan, const LostGpus& gpus);

// Every pipeline has every layer, divided into as many equal shards as the TP degree of its stage; with
// ZeRO-1 only one rank of each group of pipelines that share states has each part of the optimizer's state.
bool holds_whole_state(const Plan& plan, const LostGpus& lost);

}  // namespace sailor
