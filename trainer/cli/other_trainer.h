// A job whose `trainer:` is not Sailor's own (planner/spec/trainer_spec.h): starts its program on the nodes
// of the plan.
#pragma once

#include <string>
#include <vector>

#include "planner/inputs/planning_record.h"
#include "planner/plan/plan.h"
#include "planner/scheduler/scheduler.h"
#include "planner/spec/job_spec.h"

namespace sailor {

// The job's command. A word `{flags}` becomes the flags by which its framework takes the plan. Throws
// InputError if it has none, or cannot run the plan.
std::vector<std::string> command_of(const JobSpec& job, const Plan& plan);

// Writes the plan and the planner's inputs into the run directory, and runs the program to its end. Returns
// its exit code.
int run_other_trainer(const JobSpec& job, const Plan& plan, const std::string& run_directory,
                      const PlanningFiles& planning, Scheduler& scheduler, const Allocation& allocation);

}  // namespace sailor
