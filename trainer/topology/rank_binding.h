// Assigns processors, memory and a network card to the rank of each GPU. Pure.
#pragma once

#include <vector>

#include "trainer/topology/machine_topology.h"

namespace sailor {

// Processors of one core, numbered by the operating system.
using CoreSet = std::vector<int>;

// `near`: by GPU, the processors close to it. GPUs that are close to the same processors divide them evenly
// by core; if there are fewer cores than GPUs, they share them. Of the closest network cards a GPU gets the
// one with the fewest GPUs so far. Reads gpus, nics and gpu_to_nic of `machine`.
std::vector<MachineTopology::Binding> bind_ranks(const MachineTopology& machine,
                                                 const std::vector<CoreSet>& cores,
                                                 const std::vector<std::vector<int>>& near);

// {0, 1, 2, 5} -> "0-2,5", the format of taskset, numactl and Slurm.
std::string cpu_list(std::vector<int> cpus);

}  // namespace sailor
