#include "trainer/gpu/pci_addresses.h"

#include "trainer/topology/machine_topology.h"

namespace sailor {

std::vector<std::string> gpu_pci_addresses() {
  std::vector<std::string> addresses;
  for (const MachineTopology::Device& gpu : discover_topology().gpus) addresses.push_back(gpu.pci);
  return addresses;
}

}  // namespace sailor
