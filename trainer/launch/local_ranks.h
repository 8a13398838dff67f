// Ranks on this machine without mpirun: starts them with a directory for the bootstrap
// (comm/directory_bootstrap.h) and waits until all have ended, like mpirun. Ranks detach (detached_start.h),
// so the wait is short.
#pragma once

#include <string>
#include <vector>

namespace sailor {

inline constexpr int kMaxLocalRanks = 4096;

// In the directory of a meeting, the file with the exit code of run_local_ranks() of the ranks from `first`
// on.
std::string start_file(const std::string& directory, int first);

// Starts `program` (with its arguments) that many times and returns 0 if all exit with 0. When one fails, or
// on SIGTERM or SIGINT, ends the others and returns a non-zero code. If the environment names a meeting,
// these are the ranks from SAILOR_RANK on, of several nodes (node_ranks.h). Throws std::runtime_error.
int run_local_ranks(int ranks, const std::vector<std::string>& program);

}  // namespace sailor
