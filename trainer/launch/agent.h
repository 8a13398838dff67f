// The agent of one node. It runs the launcher's daemon, adopts the ranks that detach from it, and reports to
// the controller when one ends. It ends all of them on a stop, a signal, or when its lease expires. It runs
// until the last rank has ended, and so keeps the Slurm step alive.
//
// In an elastic job it runs until the job ends: it restarts ranks and kills ranks that hang, on request of
// the controller. In a job that is elastic or saves checkpoints it first notifies the controller of a signal,
// so that the node can leave in an orderly way.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "trainer/control/control_message.h"

namespace sailor {

// Runs `command` and returns when the last adopted process has ended. Returns the exit code of the agent: 0
// if all processes succeeded. Reads the controller's address from the environment. Call from a
// single-threaded process. Throws std::runtime_error.
int run_agent(const std::vector<std::string>& command);

// Starts `sailor-rank --join` as a child of the calling thread: it ends with this thread, and inherits the
// environment. Throws std::runtime_error.
pid_t start_joining_rank(const StartProcess& what);

// The name of this node in the cluster: the scheduler's name, else the host name.
std::string node_name();

}  // namespace sailor
