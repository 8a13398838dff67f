#include <ATen/Context.h>
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <stdexcept>

#include "trainer/comm/nccl/cuda_device.h"
#include "trainer/comm/nccl/nccl_library.h"
#include "trainer/comm/nccl/nccl_plane.h"
#include "trainer/gpu/gpu.h"
#include "trainer/gpu/pci_addresses.h"
#include "trainer/topology/gpu_environment.h"

namespace sailor {
namespace {

class CudaGpu : public Gpu {
 public:
  explicit CudaGpu(int index) : device_(index) {}
  Device& device() override { return device_; }
  std::unique_ptr<CommFactory> plane(CommFactory& below, const CommOptions& options) override {
    return std::make_unique<NcclFactory>(below, device_.index(), options);
  }
  std::string name() const override { return cuda_device_name(cuda_library(), device_.index()); }

 private:
  CudaDevice device_;
};

bool has_driver() {
  return std::filesystem::exists("/dev/nvidiactl") || std::filesystem::exists("/proc/driver/nvidia/version");
}

// Does the environment request processors?
bool wants_processors() {
  const char* const device = std::getenv("SAILOR_DEVICE");
  if (device == nullptr || std::string(device) == "gpu" || shares_gpus()) return false;
  if (std::string(device) == "cpu") return true;
  throw std::runtime_error(fmt::format("SAILOR_DEVICE={}: it is cpu, gpu or shared", device));
}

std::optional<int> cuda_index(const GpuWish& wish) {
  const CudaLibrary& cuda = cuda_library();
  const int count = cuda_device_count(cuda);
  if (shares_gpus() && count > 0) return (wish.index_on_node < 0 ? wish.rank : wish.index_on_node) % count;
  if (wish.index_on_node < 0) {
    if (count < wish.ranks) return std::nullopt;
    return wish.rank;
  }
  // In a job that has a part of the node, those of the job.
  const std::vector<std::string> addresses = gpu_pci_addresses();
  std::vector<int> own;
  for (const std::string& pci : addresses)
    if (const std::optional<int> index = cuda_device_at(cuda, pci)) own.push_back(*index);
  if (wish.index_on_node < static_cast<int>(own.size()))
    return own[static_cast<std::size_t>(wish.index_on_node)];
  throw std::runtime_error(
      fmt::format("there is no GPU {}: this process may use {} of the {} GPUs of this node "
                  "(CUDA_VISIBLE_DEVICES, control "
                  "groups of the job)",
                  wish.index_on_node, own.size(), addresses.size()));
}

std::string unusable(const std::string& why) {
  return fmt::format(
      "this node has GPUs, and they cannot be used: {}; SAILOR_DEVICE=cpu in the environment of the job "
      "trains on CPUs",
      why);
}

}  // namespace

int gpu_count() {
  return wants_processors() || !has_driver() ? 0 : cuda_device_count(cuda_library());
}

std::unique_ptr<Gpu> open_gpu(const GpuWish& wish) {
  if (wants_processors() || !has_driver()) return nullptr;
  try {
    const std::optional<int> index = cuda_index(wish);
    if (!index) return nullptr;
    if (!at::hasCUDA()) throw std::runtime_error("this libtorch was built for processors only");
    static_cast<void>(nccl_library());  // missing ones are found now
    return std::make_unique<CudaGpu>(*index);
  } catch (const DeviceFailure& error) {
    throw DeviceFailure(unusable(error.what()), error.out_of_memory());
  } catch (const std::runtime_error& error) {
    throw std::runtime_error(unusable(error.what()));
  }
}

}  // namespace sailor
