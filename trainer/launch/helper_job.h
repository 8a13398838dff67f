// A helper job: one additional node for a running job. It is an ordinary batch job of the same user, which
// waits in the scheduler's queue for its turn.
//
// Its script, `sailor-agent helper-node`, runs the node's agent as a step; the job ends with that step. A
// helper job that starts when its controller is gone ends by itself, because its agent finds no controller.
// So does a running one, when the lease of its agent expires.
//
// `sailor-agent helper` is its keeper, a child of the controller. It submits the job, and cancels it on
// request (kEndHelperJob) or when the controller dies. It ends when the job is not in the queue any more, and
// asks the scheduler for that at growing intervals. The next start of the same job cancels what a killed
// controller and its keepers have left.
#pragma once

#include <csignal>
#include <string>
#include <vector>

#include "planner/scheduler/scheduler.h"

namespace sailor {

constexpr int kEndHelperJob = SIGUSR1;

// The keeper's command line, and its parser for all that follows `helper`. parse_keeper() throws
// std::runtime_error.
std::vector<std::string> keeper_command(const std::string& agent_program, const HelperRequest& request);
HelperRequest parse_keeper(const std::vector<std::string>& arguments);

// The keeper. `agent_program` is the script of the job. Returns the exit code of the process: 1 if the
// scheduler refused the job or removed it, with the reason on stderr. Call from a single-threaded process.
int keep_helper_job(Scheduler& scheduler, HelperRequest request, const std::string& agent_program);

// In a helper job: the step that runs its agent. Throws std::runtime_error outside a job.
StepSpec helper_step(Scheduler& scheduler, const std::string& agent_program);
// Is this process in a step of helper_step()?
bool in_helper_job();
// Seconds that the own job has, which was told to leave: until its end as the scheduler says, if it is
// preempted and that is later than `least_s`; otherwise `least_s`.
double time_to_leave_s(Scheduler& scheduler, int64_t now_s, double least_s);

}  // namespace sailor
