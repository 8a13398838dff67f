// Which network card NCCL shall use for the rank of a GPU: its environment variables, from the topology.
#pragma once

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "trainer/topology/machine_topology.h"

namespace sailor {

using NicEnvironment = std::vector<std::pair<std::string, std::string>>;

// NCCL_IB_HCA for a card that speaks RDMA; else NCCL_SOCKET_IFNAME, when its interface is among `interfaces`.
// Empty when the machine has no such GPU, or no card on the GPU's own socket: then NCCL's choice is as good.
// Pure.
NicEnvironment nic_environment(const MachineTopology& machine, int gpu,
                               const std::set<std::string>& interfaces);

// Puts it into the environment of this process, but for what the user has set. `address` is that at which
// other ranks reach this one: a card that is on another network serves nobody.
void choose_nic(const MachineTopology& machine, int gpu, const std::string& address);

}  // namespace sailor
