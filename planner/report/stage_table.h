// Stage by stage: layers, GPUs, nodes, time, memory of one plan.
#pragma once

#include <string>

#include "planner/plan/plan.h"
#include "planner/simulator/prediction.h"

namespace sailor {

// A row per stage, at most 120 characters wide, then the sum. Pipelines that are alike are shown once, and
// stages of a pipeline that follow one another and differ in nothing but which layers they have are one row
// ("2-7"), with the largest of their memory and busy parts. Ends in a newline.
std::string stage_table(const Plan& plan, const Prediction& prediction);

}  // namespace sailor
