// A helper job: one node beyond those of the main job, asked of the scheduler for as long as the main job can
// use it.
//
// `sailor-agent helper` is its keeper, a child of the controller: it asks for the node, runs the node's agent
// there as a step, and cancels the job when that step ends, when it is told to (kEndHelperJob), or when
// the controller dies. What the scheduler sends to all processes of a job that is to go, SIGTERM, does not
// end it: the state of training is saved first. Where the keeper is gone too (the controller's node is lost),
// the agent cancels the job itself when its lease has run out. What is left of a killed run is cancelled by
// the next start of the same job.
#pragma once

#include <csignal>
#include <string>
#include <vector>

#include "planner/scheduler/scheduler.h"

namespace sailor {

constexpr int kEndHelperJob = SIGUSR1;

// The keeper's own command line, and back. parse_keeper() throws std::runtime_error.
std::vector<std::string> keeper_command(const std::string& agent_program, const HelperRequest& request);
HelperRequest parse_keeper(const std::vector<std::string>& arguments);

// The keeper: returns the exit code of the process when the job is over: 1 when the scheduler did not give
// the node, with its reason on stderr. Call from a process without threads. Throws std::runtime_error.
int keep_helper_job(Scheduler& scheduler, const HelperRequest& request, const std::string& agent_program);

// Of the process of an agent: cancels the helper job that it runs in. Does nothing in another one.
void end_own_helper_job(Scheduler& scheduler);

}  // namespace sailor
