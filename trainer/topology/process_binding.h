// Binds a rank's process to processors and memory close to its GPU.
#pragma once

#include <string>

#include "trainer/topology/machine_topology.h"

namespace sailor {

// Binds all current and future threads of this process to the intersection of its processors with those of
// `binding`, and new memory to its NUMA nodes. An existing binding (Slurm's, taskset's) is only narrowed:
// without a common processor nothing changes. Returns the processors that it is now bound to ("0-15"); empty
// = nothing was changed.
std::string bind_process(const MachineTopology::Binding& binding);

}  // namespace sailor
