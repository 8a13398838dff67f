// A job whose `trainer:` is not Sailor's own (planner/spec/trainer_spec.h): starts its program on the nodes
// of the plan.
#pragma once

#include <string>

#include "planner/inputs/planning_record.h"
#include "planner/plan/plan.h"
#include "planner/scheduler/scheduler.h"
#include "planner/spec/job_spec.h"

namespace sailor {

// Writes the plan and the planner's inputs into the run directory, and runs the program to its end. Returns
// its exit code. Throws InputError if the command asks for flags that its framework does not have, or with
// which it cannot run the plan.
int run_other_trainer(const JobSpec& job, const Plan& plan, const std::string& run_directory,
                      const PlanningFiles& planning, Scheduler& scheduler, const Allocation& allocation);

}  // namespace sailor
