// NCCL's environment variables for the network of a node.
//
// NCCL itself finds the cards with RDMA and uses those near each GPU, so NCCL_IB_HCA is left to the user:
// NCCL requires that the ranks of a communicator agree on it. What NCCL does not know is the network over
// which the nodes of the job reach each other.
#pragma once

#include <set>
#include <string>
#include <utility>
#include <vector>

namespace sailor {

using NicEnvironment = std::vector<std::pair<std::string, std::string>>;

// NCCL_SOCKET_IFNAME with all of a node's `interfaces` in the job's network. Empty if there are none. Pure.
NicEnvironment nic_environment(const std::set<std::string>& interfaces);

// Sets it in the environment of this process, unless the user has. `address` is the one at which other ranks
// reach this one: all ranks of a node get the same value. Sets nothing for a loopback address.
void set_nic_environment(const std::string& address);

}  // namespace sailor
