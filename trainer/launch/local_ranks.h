// Ranks on this machine without mpirun: starts them with a directory for the bootstrap
// (comm/directory_bootstrap.h) and waits until all have ended, like mpirun. Ranks detach (detached_start.h),
// so the wait is short.
#pragma once

#include <string>
#include <vector>

namespace sailor {

// Starts `program` (with its arguments) that many times and returns 0 if all exit with 0. When one fails, or
// on SIGTERM or SIGINT, ends the others and returns a non-zero code. Throws std::runtime_error.
int run_local_ranks(int ranks, const std::vector<std::string>& program);

}  // namespace sailor
