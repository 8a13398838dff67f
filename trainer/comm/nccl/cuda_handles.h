// Resources of the CUDA runtime as objects that release them. Constructors throw CudaError. The table
// outlives them, and the device that they were created on is current when they are created and used.
#pragma once

#include <cstddef>
#include <utility>

#include "trainer/comm/nccl/cuda_library.h"

namespace sailor {

// Makes `device` current for the calling thread, and restores the previous one at the end.
class DeviceGuard {
 public:
  DeviceGuard(const CudaLibrary& cuda, int device) : cuda_(cuda) {
    check(cuda_, cuda_.get_device(&before_), "cudaGetDevice");
    if (before_ != device) check(cuda_, cuda_.set_device(device), "cudaSetDevice");
    changed_ = before_ != device;
  }
  ~DeviceGuard() {
    if (changed_) static_cast<void>(cuda_.set_device(before_));
  }
  DeviceGuard(const DeviceGuard&) = delete;
  DeviceGuard& operator=(const DeviceGuard&) = delete;

 private:
  const CudaLibrary& cuda_;
  int before_ = 0;
  bool changed_ = false;
};

// A stream that is not synchronized with the legacy default stream.
class CudaStream {
 public:
  explicit CudaStream(const CudaLibrary& cuda) : cuda_(cuda) {
    check(cuda_, cuda_.stream_create(&stream_, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  }
  ~CudaStream() { static_cast<void>(cuda_.stream_destroy(stream_)); }
  CudaStream(const CudaStream&) = delete;
  CudaStream& operator=(const CudaStream&) = delete;

  cudaStream_t get() const { return stream_; }
  // Later operations wait for what `event` recorded last.
  void wait_for(cudaEvent_t event) { wait_for(cuda_, stream_, event); }
  static void wait_for(const CudaLibrary& cuda, cudaStream_t stream, cudaEvent_t event) {
    check(cuda, cuda.stream_wait_event(stream, event, 0), "cudaStreamWaitEvent");
  }

 private:
  const CudaLibrary& cuda_;
  cudaStream_t stream_ = nullptr;
};

// A point in a stream.
class CudaEvent {
 public:
  enum class Times { no, yes };  // whether it records its time
  explicit CudaEvent(const CudaLibrary& cuda, Times times = Times::no) : cuda_(&cuda) {
    const unsigned flags = times == Times::yes ? cudaEventDefault : cudaEventDisableTiming;
    check(*cuda_, cuda_->event_create(&event_, flags), "cudaEventCreateWithFlags");
  }
  CudaEvent(CudaEvent&& other) noexcept : cuda_(other.cuda_), event_(std::exchange(other.event_, nullptr)) {}
  CudaEvent& operator=(CudaEvent&&) = delete;
  ~CudaEvent() {
    if (event_) static_cast<void>(cuda_->event_destroy(event_));
  }

  cudaEvent_t get() const { return event_; }
  void record(cudaStream_t stream) { check(*cuda_, cuda_->event_record(event_, stream), "cudaEventRecord"); }
  // Has the stream reached it?
  bool reached() const {
    const cudaError_t result = cuda_->event_query(event_);
    if (result == cudaErrorNotReady) {
      static_cast<void>(cuda_->get_last_error());
      return false;
    }
    check(*cuda_, result, "cudaEventQuery");
    return true;
  }

 private:
  const CudaLibrary* cuda_;
  cudaEvent_t event_ = nullptr;
};

// Host memory that the device can access directly.
class PinnedBuffer {
 public:
  PinnedBuffer(const CudaLibrary& cuda, std::size_t bytes) : cuda_(cuda) {
    check(cuda_, cuda_.host_alloc(&data_, bytes, cudaHostAllocDefault), "cudaHostAlloc");
  }
  ~PinnedBuffer() { static_cast<void>(cuda_.free_host(data_)); }
  PinnedBuffer(const PinnedBuffer&) = delete;
  PinnedBuffer& operator=(const PinnedBuffer&) = delete;

  void* get() const { return data_; }

 private:
  const CudaLibrary& cuda_;
  void* data_ = nullptr;
};

}  // namespace sailor
