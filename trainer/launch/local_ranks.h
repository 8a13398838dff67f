// Ranks on this machine without mpirun: starts them with a directory to meet in (comm/directory_bootstrap.h)
// and stays until all have ended, as mpirun does. They detach (detached_start.h), so that this is soon.
#pragma once

#include <string>
#include <vector>

namespace sailor {

// Starts `program` (with its arguments) that many times and returns 0 when all have ended with 0. When one
// fails, or SIGTERM or SIGINT arrives, ends the others and returns another code. Throws std::runtime_error.
int run_local_ranks(int ranks, const std::vector<std::string>& program);

}  // namespace sailor
