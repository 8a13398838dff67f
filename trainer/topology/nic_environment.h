// NCCL's environment variables for the network card of a GPU's rank, from the topology.
#pragma once

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "trainer/topology/machine_topology.h"

namespace sailor {

using NicEnvironment = std::vector<std::pair<std::string, std::string>>;

// NCCL_IB_HCA for a card with RDMA; else NCCL_SOCKET_IFNAME, if its interface is in `interfaces`. Empty if
// the machine has no such GPU, or no card on the GPU's own socket: then NCCL's choice is as good. Pure.
NicEnvironment nic_environment(const MachineTopology& machine, int gpu,
                               const std::set<std::string>& interfaces);

// Sets them in the environment of this process, except those that the user has set. `address` is the one at
// which other ranks reach this one: a card on another network is useless.
void choose_nic(const MachineTopology& machine, int gpu, const std::string& address);

}  // namespace sailor
