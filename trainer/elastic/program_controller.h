// The controller of an elastic job that runs another trainer's program (programs.h). It starts the program's
// ranks under a plan. When a node is lost or must be left, or more nodes are ready under which another plan
// pays, it tells all ranks to end, plans again, and starts them under the new plan, from the program's own
// checkpoint.
//
// Ranks hear of a change by a signal (trainer.signal), and find its reason in the file SAILOR_CHANGE. They
// have time to save (trainer.grace).
#pragma once

#include <functional>
#include <iosfwd>
#include <string>
#include <vector>

#include "planner/plan/plan.h"
#include "planner/spec/framework_style.h"
#include "planner/spec/job_spec.h"
#include "trainer/elastic/controller.h"

namespace sailor {

struct ProgramJob {
  const JobSpec& job;
  std::string job_text;
  Plan plan;  // placed
  FrameworkStyle framework;
  // The program and its arguments under a plan. Throws InputError if its framework cannot run it.
  std::function<std::vector<std::string>(const Plan&)> command;
};

// Returns when the job has ended: 0 if all ranks of the last generation ended so, else the exit code of the
// first one that failed, or 1. Call from a single-threaded process. Throws InputError, std::runtime_error.
int run_elastic_programs(const ProgramJob& program, const ControllerOptions& options, Scheduler& scheduler,
                         std::ostream& out);

}  // namespace sailor
