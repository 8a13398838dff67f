// A plan file from the user: reads it, checks it against the job and the cluster, and predicts it.
#pragma once

#include <string>
#include <vector>

#include "planner/inputs/load_inputs.h"
#include "planner/plan/plan.h"
#include "planner/simulator/simulate.h"
#include "planner/simulator/timeline.h"

namespace sailor::cli {

// Throws InputError when the file is broken or the plan does not fit the job. Features that the trainer does
// not support are a note on standard error.
Plan read_given_plan(const std::string& file, const PlanningInputs& inputs);

// GPUs of the plan that the nodes of the `cluster` do not have (its name for people; empty: of any cluster),
// as one line with its place; empty if none.
std::string beyond_cluster(const Plan& plan, const std::string& file, const Snapshot& snapshot,
                           const std::string& cluster);
// The same for GPU memory: the stage that exceeds it most.
std::string beyond_memory(const Plan& plan, const std::string& file, const Prediction& prediction);

// Cells or links that the profiles lack are errors of the plan here. `timelines` are only filled by the
// native cost model.
Prediction predict_given_plan(const PlanningInputs& inputs, const Plan& plan, CostModel model,
                              const std::string& file, std::vector<Timeline>* timelines = nullptr);

}  // namespace sailor::cli
