// Which processors, memory and network card the rank of each GPU gets. Pure.
#pragma once

#include <vector>

#include "trainer/topology/machine_topology.h"

namespace sailor {

// Processors of one core, by the operating system's numbers.
using CoreSet = std::vector<int>;

// `near`: by GPU, the processors close to it. GPUs that are close to the same processors share them out, core
// by core and evenly; when there are fewer cores than GPUs they have them in common. Of the closest network
// cards a GPU gets one that serves the fewest GPUs so far. Reads gpus, nics and gpu_to_nic of `machine`.
std::vector<MachineTopology::Binding> bind_ranks(const MachineTopology& machine,
                                                 const std::vector<CoreSet>& cores,
                                                 const std::vector<std::vector<int>>& near);

// {0, 1, 2, 5} -> "0-2,5", the form of taskset, numactl and Slurm.
std::string cpu_list(std::vector<int> cpus);

}  // namespace sailor
