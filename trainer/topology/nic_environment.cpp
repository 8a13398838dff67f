#include "trainer/topology/nic_environment.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <cstdlib>
#include <memory>

namespace sailor {
namespace {

// The interface with this IPv4 address, and others in its network; none for the loopback interface.
std::set<std::string> interfaces_of_network(const std::string& address) {
  std::set<std::string> names;
  in_addr own{};
  ifaddrs* raw = nullptr;
  if (inet_pton(AF_INET, address.c_str(), &own) != 1 || getifaddrs(&raw) != 0) return names;
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> list(raw, freeifaddrs);
  for (const ifaddrs* entry = raw; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr || entry->ifa_netmask == nullptr) continue;
    if (entry->ifa_addr->sa_family != AF_INET || (entry->ifa_flags & IFF_LOOPBACK) != 0) continue;
    const in_addr_t here = reinterpret_cast<const sockaddr_in*>(entry->ifa_addr)->sin_addr.s_addr;
    const in_addr_t mask = reinterpret_cast<const sockaddr_in*>(entry->ifa_netmask)->sin_addr.s_addr;
    if ((here & mask) == (own.s_addr & mask)) names.insert(entry->ifa_name);
  }
  return names;
}

}  // namespace

NicEnvironment nic_environment(const std::set<std::string>& interfaces) {
  if (interfaces.empty()) return {};
  // `=` asks for exactly these names: eth1 alone would also mean eth10.
  return {{"NCCL_SOCKET_IFNAME", fmt::format("={}", fmt::join(interfaces, ","))}};
}

void set_nic_environment(const std::string& address) {
  for (const auto& [name, value] : nic_environment(interfaces_of_network(address)))
    setenv(name.c_str(), value.c_str(), 0);
}

}  // namespace sailor
