// A GPU as the device of a rank: three streams of its own, events between them, and pinned host memory.
//
// The compute stream is not one of CUDA's default streams: libtorch gets it as an external stream
// (model/torch_device.h), so that one handle has the same meaning for libtorch, CUDA and the NCCL plane, for
// which null is not CUDA's default stream.
#pragma once

#include <optional>
#include <string>

#include "trainer/comm/device.h"
#include "trainer/comm/nccl/cuda_handles.h"

namespace sailor {

class CudaDevice : public Device {
 public:
  // Tests use a CUDA runtime without a GPU, and tensors in host memory: compute() is then null, and the other
  // streams are the runtime's.
  enum class Tensors { on_device, on_host };

  // `index` in this process. `cuda` outlives the object. Throws CudaError.
  explicit CudaDevice(int index, const CudaLibrary& cuda = cuda_library(),
                      Tensors tensors = Tensors::on_device);
  ~CudaDevice() override;

  int index() const { return index_; }
  int gpu() const override { return tensors_ == Tensors::on_device ? index_ : -1; }
  bool asynchronous() const override { return true; }
  Stream compute() const override;
  Stream gradients() const override { return streams_->gradients.get(); }
  Stream copies() const override { return streams_->copies.get(); }

  void order(Stream before, Stream after) override;
  std::unique_ptr<StreamPoint> point(Stream stream) override;
  void wait(Stream stream) override;
  void copy(void* to, const void* from, std::size_t bytes, Stream stream) override;
  std::shared_ptr<char> host_memory(std::size_t bytes) override;
  std::shared_ptr<char> device_memory(std::size_t bytes) override;
  std::shared_ptr<void> hold(Stream stream) override;
  std::shared_ptr<TimeMark> mark() override;
  double seconds_between(const TimeMark& from, const TimeMark& to) override;
  int64_t used_bytes() override;
  int64_t total_bytes() override;
  std::optional<std::string> failure() override;

 private:
  struct Memory {
    std::size_t free = 0, total = 0;
  };
  Memory memory();
  struct Streams {
    explicit Streams(const CudaLibrary& cuda) : compute(cuda), gradients(cuda), copies(cuda) {}
    CudaStream compute, gradients, copies;
  };

  const CudaLibrary& cuda_;
  const int index_;
  const Tensors tensors_;
  std::optional<Streams> streams_;
};

// Number of GPUs that this process may use. 0 without a driver. Throws CudaError.
int cuda_device_count(const CudaLibrary& cuda);
std::string cuda_device_name(const CudaLibrary& cuda, int index);
// Index of the GPU with this PCI address ("0000:07:00.0"); empty if this process may not use it.
std::optional<int> cuda_device_at(const CudaLibrary& cuda, const std::string& pci);

}  // namespace sailor
