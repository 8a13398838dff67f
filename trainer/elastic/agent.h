// The agent of one node: runs the launcher's daemon, adopts the ranks that detach from it, tells the
// controller when one ends, and ends them all on a stop, a signal, or when its lease runs out. It lives as
// long as they do, so that the Slurm step does too.
#pragma once

#include <string>
#include <vector>

namespace sailor {

// Runs `command` and stays until the last adopted process has gone. Returns the exit code of the process: 0
// when every one ended well. Reads the controller's address from the environment. Call from a process without
// threads. Throws std::runtime_error.
int run_agent(const std::vector<std::string>& command);

// The cluster's name of this node: SLURMD_NODENAME, else the host name.
std::string node_name();

}  // namespace sailor
