#include "trainer/topology/nic_environment.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>

#include <cstdlib>
#include <memory>

namespace sailor {
namespace {

// The interface with this IPv4 address, and others in its network.
std::set<std::string> interfaces_of_network(const std::string& address) {
  std::set<std::string> names;
  in_addr own{};
  ifaddrs* raw = nullptr;
  if (inet_pton(AF_INET, address.c_str(), &own) != 1 || getifaddrs(&raw) != 0) return names;
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> list(raw, freeifaddrs);
  for (const ifaddrs* entry = raw; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr || entry->ifa_netmask == nullptr) continue;
    if (entry->ifa_addr->sa_family != AF_INET) continue;
    const in_addr_t here = reinterpret_cast<const sockaddr_in*>(entry->ifa_addr)->sin_addr.s_addr;
    const in_addr_t mask = reinterpret_cast<const sockaddr_in*>(entry->ifa_netmask)->sin_addr.s_addr;
    if ((here & mask) == (own.s_addr & mask)) names.insert(entry->ifa_name);
  }
  return names;
}

}  // namespace

NicEnvironment nic_environment(const MachineTopology& machine, int gpu,
                               const std::set<std::string>& interfaces) {
  if (gpu < 0 || gpu >= static_cast<int>(machine.bindings.size())) return {};
  const auto index = static_cast<size_t>(gpu);
  if (machine.bindings[index].nic < 0) return {};
  const auto nic = static_cast<size_t>(machine.bindings[index].nic);
  if (machine.gpu_to_nic[index][nic] == Proximity::across_sockets) return {};
  const MachineTopology::Device& card = machine.nics[nic];
  // `=` asks for exactly this name: mlx5_1 alone would also mean mlx5_10.
  if (!card.rdma_name.empty()) return {{"NCCL_IB_HCA", "=" + card.rdma_name}};
  if (interfaces.count(card.interface_name) > 0) return {{"NCCL_SOCKET_IFNAME", "=" + card.interface_name}};
  return {};
}

void choose_nic(const MachineTopology& machine, int gpu, const std::string& address) {
  for (const auto& [name, value] : nic_environment(machine, gpu, interfaces_of_network(address)))
    setenv(name.c_str(), value.c_str(), 0);
}

}  // namespace sailor
