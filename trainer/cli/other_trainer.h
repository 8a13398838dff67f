// A job whose `trainer:` is not Sailor's own (planner/spec/trainer_spec.h): starts its program on the nodes
// of the plan.
#pragma once

#include <string>

#include "planner/plan/plan.h"
#include "planner/scheduler/scheduler.h"
#include "planner/spec/job_spec.h"
#include "trainer/elastic/controller.h"

namespace sailor {

// Runs the program to its end, in the run directory of the options, which gets the plan and the planner's
// inputs. An elastic job goes on after changes of plan (program_controller.h). Returns the exit code. Throws
// InputError if the command asks for flags that its framework does not have, or with which it cannot run the
// plan.
int run_other_trainer(const JobSpec& job, const std::string& job_text, const Plan& plan,
                      const ControllerOptions& options, Scheduler& scheduler);

}  // namespace sailor
