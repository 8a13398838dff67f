// Binds the process of a rank where its GPU is: to processors and memory close to it.
#pragma once

#include <string>

#include "trainer/topology/machine_topology.h"

namespace sailor {

// Binds every thread of this process, and those that it will start, to that part of its processors that
// `binding` has, and new memory to its NUMA nodes. What binding stands already (Slurm's, taskset's) is only
// ever narrowed: without a processor in common nothing changes. Returns the processors that it is bound to
// now ("0-15"); empty = nothing was changed.
std::string bind_process(const MachineTopology::Binding& binding);

}  // namespace sailor
