// Where the GPUs of this node are.
#pragma once

#include <string>
#include <vector>

namespace sailor {

// In their order, which is that of plans. Throws std::runtime_error.
std::vector<std::string> gpu_pci_addresses();

}  // namespace sailor
