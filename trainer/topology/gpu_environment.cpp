#include "trainer/topology/gpu_environment.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <string>

namespace sailor {

bool shares_gpus() {
  const char* const device = std::getenv("SAILOR_DEVICE");
  return device != nullptr && std::string(device) == "shared";
}

void set_gpu_environment() {
  setenv("CUDA_MODULE_LOADING", "EAGER", /*replace=*/0);
  setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", /*replace=*/0);
  if (!shares_gpus()) return;
  std::array<char, 256> host{};
  gethostname(host.data(), host.size() - 1);
  setenv("NCCL_HOSTID", fmt::format("{}-{}", host.data(), getpid()).c_str(), /*replace=*/1);
}

void set_deterministic_environment() {
  setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", /*replace=*/0);
  setenv("NCCL_NVLS_ENABLE", "0", /*replace=*/0);
}

}  // namespace sailor
