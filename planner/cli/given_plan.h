// A plan that the user gives in a file: read, checked against the job and the cluster, predicted.
#pragma once

#include <string>
#include <vector>

#include "planner/inputs/load_inputs.h"
#include "planner/plan/plan.h"
#include "planner/simulator/simulate.h"
#include "planner/simulator/timeline.h"

namespace sailor::cli {

// Throws InputError when the file is broken or the plan is none for this job. What the trainer cannot run is
// a note on standard error.
Plan read_given_plan(const std::string& file, const PlanningInputs& inputs);

// What of the plan the nodes of the `cluster` cannot give (its name for people; empty: of any cluster), as
// one line with its place; empty when nothing.
std::string beyond_cluster(const Plan& plan, const std::string& file, const Snapshot& snapshot,
                           const std::string& cluster);
// The same of the memory of its GPUs: the stage that exceeds it most.
std::string beyond_memory(const Plan& plan, const std::string& file, const Prediction& prediction);

// What the profiles cannot answer is the plan's error here: it asks for a cell or a link that was not
// measured. With `timelines`, only by the native cost model.
Prediction predict_given_plan(const PlanningInputs& inputs, const Plan& plan, CostModel model,
                              const std::string& file, std::vector<Timeline>* timelines = nullptr);

}  // namespace sailor::cli
