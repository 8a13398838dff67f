// PCI addresses of this node's GPUs.
#pragma once

#include <string>
#include <vector>

namespace sailor {

// In ascending order, which is that of plans. Throws std::runtime_error.
std::vector<std::string> gpu_pci_addresses();

}  // namespace sailor
