#include "trainer/topology/gpu_environment.h"

#include <cstdlib>

namespace sailor {

void set_gpu_environment() {
  setenv("CUDA_MODULE_LOADING", "EAGER", /*replace=*/0);
  setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", /*replace=*/0);
}

}  // namespace sailor
