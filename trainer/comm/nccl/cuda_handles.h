// Resources of the CUDA runtime as objects that release them. Constructors throw CudaError. The table
// outlives them, and the device that they were created on is current when they are created and used, but not
// necessarily when they are released.
#pragma once

#include <cstddef>
#include <utility>

#include "trainer/comm/nccl/cuda_library.h"

namespace sailor {

// Makes `device` current for the calling thread, which keeps it. The previous one is not restored: a thread
// that had none has device 0, and to make that current would create a context on a GPU of another rank.
inline void use_device(const CudaLibrary& cuda, int device) {
  int current = 0;
  check(cuda, cuda.get_device(&current), "cudaGetDevice");
  if (current != device) check(cuda, cuda.set_device(device), "cudaSetDevice");
}

// The device that was current when a resource was created. A resource may be released on another thread.
class OwnDevice {
 public:
  explicit OwnDevice(const CudaLibrary& cuda) : cuda_(&cuda) {
    check(cuda, cuda.get_device(&device_), "cudaGetDevice");
  }
  const CudaLibrary& cuda() const { return *cuda_; }
  // For destructors: makes it current. A device that fails is not an error there.
  const CudaLibrary& current() const noexcept {
    int current = 0;
    if (cuda_->get_device(&current) != cudaSuccess || current != device_)
      static_cast<void>(cuda_->set_device(device_));
    return *cuda_;
  }

 private:
  const CudaLibrary* cuda_;
  int device_ = 0;
};

// A stream that is not synchronized with the legacy default stream.
class CudaStream {
 public:
  explicit CudaStream(const CudaLibrary& cuda) : device_(cuda) {
    check(cuda, cuda.stream_create(&stream_, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  }
  ~CudaStream() { static_cast<void>(device_.current().stream_destroy(stream_)); }
  CudaStream(const CudaStream&) = delete;
  CudaStream& operator=(const CudaStream&) = delete;

  cudaStream_t get() const { return stream_; }
  // Later operations wait for what `event` recorded last.
  void wait_for(cudaEvent_t event) { wait_for(device_.cuda(), stream_, event); }
  static void wait_for(const CudaLibrary& cuda, cudaStream_t stream, cudaEvent_t event) {
    check(cuda, cuda.stream_wait_event(stream, event, 0), "cudaStreamWaitEvent");
  }

 private:
  const OwnDevice device_;
  cudaStream_t stream_ = nullptr;
};

// A point in a stream.
class CudaEvent {
 public:
  enum class Times { no, yes };  // whether it records its time
  explicit CudaEvent(const CudaLibrary& cuda, Times times = Times::no) : device_(cuda) {
    const unsigned flags = times == Times::yes ? cudaEventDefault : cudaEventDisableTiming;
    check(cuda, cuda.event_create(&event_, flags), "cudaEventCreateWithFlags");
  }
  CudaEvent(CudaEvent&& other) noexcept
      : device_(other.device_), event_(std::exchange(other.event_, nullptr)) {}
  CudaEvent& operator=(CudaEvent&&) = delete;
  ~CudaEvent() {
    if (event_) static_cast<void>(device_.current().event_destroy(event_));
  }

  cudaEvent_t get() const { return event_; }
  void record(cudaStream_t stream) {
    check(device_.cuda(), device_.cuda().event_record(event_, stream), "cudaEventRecord");
  }
  // Has the stream reached it?
  bool reached() const {
    const cudaError_t result = device_.cuda().event_query(event_);
    if (result == cudaErrorNotReady) {
      static_cast<void>(device_.cuda().get_last_error());
      return false;
    }
    check(device_.cuda(), result, "cudaEventQuery");
    return true;
  }

 private:
  OwnDevice device_;
  cudaEvent_t event_ = nullptr;
};

// Memory of the device.
class DeviceBuffer {
 public:
  DeviceBuffer(const CudaLibrary& cuda, std::size_t bytes) : device_(cuda) {
    check(cuda, cuda.malloc(&data_, bytes), "cudaMalloc");
  }
  ~DeviceBuffer() { static_cast<void>(device_.current().free(data_)); }
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;

  void* get() const { return data_; }

 private:
  const OwnDevice device_;
  void* data_ = nullptr;
};

// Host memory that the device can access directly.
class PinnedBuffer {
 public:
  PinnedBuffer(const CudaLibrary& cuda, std::size_t bytes) : device_(cuda) {
    check(cuda, cuda.host_alloc(&data_, bytes, cudaHostAllocDefault), "cudaHostAlloc");
  }
  ~PinnedBuffer() { static_cast<void>(device_.current().free_host(data_)); }
  PinnedBuffer(const PinnedBuffer&) = delete;
  PinnedBuffer& operator=(const PinnedBuffer&) = delete;

  void* get() const { return data_; }

 private:
  const OwnDevice device_;
  void* data_ = nullptr;
};

}  // namespace sailor
