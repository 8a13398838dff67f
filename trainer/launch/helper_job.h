// A helper job: one additional node, which the main job requests from the scheduler and keeps while it can
// use it.
//
// `sailor-agent helper` is its keeper, a child of the controller. It requests the node, runs the node's agent
// there as a step, and cancels the job when that step ends, on request (kEndHelperJob), or when the
// controller dies. It ignores the SIGTERM that the scheduler sends to all processes of a job before the end,
// because the training state is saved first. If the keeper is gone too (the controller's node is lost), the
// agent cancels the job when its lease has expired. The next start of the same job cancels the remaining
// helper jobs of a killed run.
#pragma once

#include <csignal>
#include <string>
#include <vector>

#include "planner/scheduler/scheduler.h"

namespace sailor {

constexpr int kEndHelperJob = SIGUSR1;

// The keeper's command line, and its parser. parse_keeper() throws std::runtime_error.
std::vector<std::string> keeper_command(const std::string& agent_program, const HelperRequest& request);
HelperRequest parse_keeper(const std::vector<std::string>& arguments);

// The keeper. Returns the exit code of the process when the job is over: 1 if the scheduler did not grant the
// node, with its reason on stderr. Call from a single-threaded process. Throws std::runtime_error.
int keep_helper_job(Scheduler& scheduler, const HelperRequest& request, const std::string& agent_program);

// For an agent: cancels the helper job that it runs in. Does nothing in other jobs.
void end_own_helper_job(Scheduler& scheduler);

}  // namespace sailor
