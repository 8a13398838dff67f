// A plan by stage: layers, GPUs, nodes, time, memory.
#pragma once

#include <string>

#include "planner/plan/plan.h"
#include "planner/simulator/prediction.h"

namespace sailor {

// A row per stage, at most 120 characters wide, then the sum. Equal pipelines are shown once. Consecutive
// stages that differ only in their layers share a row ("2-7") with their maximum memory and utilization. Ends
// in a newline.
std::string stage_table(const Plan& plan, const Prediction& prediction);

}  // namespace sailor
