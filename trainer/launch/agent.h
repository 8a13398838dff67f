// The agent of one node: runs the launcher's daemon, adopts the ranks that detach from it, tells the
// controller when one ends, and ends them all on a stop, a signal, or when its lease runs out. It lives as
// long as they do, so that the Slurm step does too.
//
// In an elastic job it lives as long as the job: it starts ranks again and kills those that hang, as the
// controller says, and on a SIGTERM it first tells the controller, so that the node can leave in an orderly
// way. On the node of a helper job (helper_job.h), it also ends that job when the controller is gone.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "trainer/control/control_message.h"

namespace sailor {

// Runs `command` and stays until the last adopted process has gone. Returns the exit code of the process: 0
// when every one ended well. Reads the controller's address from the environment. Call from a process without
// threads. Throws std::runtime_error.
int run_agent(const std::vector<std::string>& command);

// Starts `sailor-rank --join` as a child of the calling thread: it ends when this thread does. Its
// environment is this process's own. Throws std::runtime_error.
pid_t start_joining_rank(const StartProcess& what);

// The cluster's name of this node: the scheduler's, else the host name.
std::string node_name();

}  // namespace sailor
