// The live Slurm cluster, from the program sailor-cluster, so that measuring does not link Slurm's library.
#pragma once

#include "planner/spec/snapshot.h"

namespace sailor {

// `busy_too`: nodes that run jobs count as free. Throws InputError, std::runtime_error.
Snapshot read_live_cluster(bool busy_too = false);

}  // namespace sailor
