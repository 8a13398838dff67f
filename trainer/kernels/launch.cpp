// Device kernels are in the program as a module for all architectures (device_kernels.cu), which the driver
// loads: neither it nor the CUDA runtime is linked, so one build works with and without GPUs.
#include <fmt/format.h>

#include <stdexcept>
#include <string>

#include "trainer/kernels/grid.h"
#include "trainer/kernels/place.h"

#if defined(SAILOR_DEVICE_KERNELS)
#include <cuda.h>

#include <map>
#include <mutex>

#include "trainer/comm/device.h"
#include "trainer/comm/nccl/shared_library.h"

// SAILOR_DEVICE_KERNELS is the path of what nvcc compiled.
__asm__(
    ".section .rodata\n"
    ".balign 16\n"
    ".global sailor_device_kernels\n"
    "sailor_device_kernels:\n"
    ".incbin \"" SAILOR_DEVICE_KERNELS
    "\"\n"
    ".previous\n");
extern "C" const unsigned char sailor_device_kernels[];
#endif

namespace sailor::kernels {

#if defined(SAILOR_DEVICE_KERNELS)
namespace {

// The kernels on the process's device. Thread-safe.
class DeviceKernels {
 public:
  DeviceKernels() : driver_("libcuda.so.1") {
    driver_.find("cuModuleLoadData", load_);
    driver_.find("cuModuleGetFunction", find_function_);
    driver_.find("cuLaunchKernel", launch_);
    driver_.find("cuGetErrorString", describe_);
    check(load_(&module_, sailor_device_kernels), "cuModuleLoadData");
  }

  void launch(const std::string& name, unsigned blocks, unsigned threads, unsigned shared_bytes,
              const void* arguments, void* stream) {
    void* parameters[] = {const_cast<void*>(arguments)};
    check(launch_(function(name), blocks, 1, 1, threads, 1, 1, shared_bytes, static_cast<CUstream>(stream),
                  parameters, nullptr),
          name.c_str());
  }

 private:
  void check(CUresult result, const char* call) const {
    if (result == CUDA_SUCCESS) return;
    if (result == CUDA_ERROR_NO_BINARY_FOR_GPU)
      throw std::runtime_error(
          "the kernels of this build do not run on this GPU: its architecture is older than those that the "
          "build's CUDA toolkit compiles for (7.5 for CUDA 13)");
    const char* reason = "unknown error";
    describe_(result, &reason);
    throw DeviceFailure(fmt::format("{}: {}", call, reason), result == CUDA_ERROR_OUT_OF_MEMORY);
  }
  CUfunction function(const std::string& name) {
    const std::lock_guard lock(mutex_);
    CUfunction& known = functions_[name];
    if (!known) check(find_function_(&known, module_, name.c_str()), name.c_str());
    return known;
  }

  SharedLibrary driver_;
  decltype(&::cuModuleLoadData) load_ = nullptr;
  decltype(&::cuModuleGetFunction) find_function_ = nullptr;
  decltype(&::cuLaunchKernel) launch_ = nullptr;
  decltype(&::cuGetErrorString) describe_ = nullptr;
  CUmodule module_ = nullptr;
  std::mutex mutex_;
  std::map<std::string, CUfunction> functions_;
};

const char* suffix_of(Element type) {
  switch (type) {
    case Element::f32:
      return "f32";
    case Element::f64:
      return "f64";
    case Element::bf16:
      return "bf16";
    case Element::f16:
      break;
  }
  return "f16";
}

}  // namespace

void launch(const char* name, Element type, int64_t blocks, int threads, std::size_t shared_bytes,
            const void* arguments, const Place& place) {
  if (place.launcher) return place.launcher->launch(name, type, blocks, threads, shared_bytes, arguments);
  static DeviceKernels kernels;
  kernels.launch(fmt::format("{}_{}", name, suffix_of(type)), static_cast<unsigned>(blocks),
                 static_cast<unsigned>(threads), static_cast<unsigned>(kReserved + shared_bytes), arguments,
                 place.stream);
}
#else
void launch(const char* name, Element type, int64_t blocks, int threads, std::size_t shared_bytes,
            const void* arguments, const Place& place) {
  if (place.launcher) return place.launcher->launch(name, type, blocks, threads, shared_bytes, arguments);
  throw std::runtime_error(fmt::format("{}: this build has no device kernels (SAILOR_CUDA=OFF)", name));
}
#endif

}  // namespace sailor::kernels
