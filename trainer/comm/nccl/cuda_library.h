// The functions of the CUDA runtime that the NCCL plane and devices call, as a table: loaded from libcudart
// on first use, or filled by a test with its own functions. Types and signatures are the toolkit's.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <string>

#include "trainer/comm/device.h"

namespace sailor {

struct CudaLibrary {
  decltype(&::cudaGetDevice) get_device;
  decltype(&::cudaSetDevice) set_device;
  decltype(&::cudaStreamCreateWithFlags) stream_create;
  decltype(&::cudaStreamDestroy) stream_destroy;
  decltype(&::cudaStreamWaitEvent) stream_wait_event;
  decltype(&::cudaStreamSynchronize) stream_synchronize;
  decltype(&::cudaEventCreateWithFlags) event_create;
  decltype(&::cudaEventRecord) event_record;
  decltype(&::cudaEventQuery) event_query;
  decltype(&::cudaEventSynchronize) event_synchronize;
  decltype(&::cudaEventDestroy) event_destroy;
  cudaError_t (*event_elapsed_time)(float*, cudaEvent_t, cudaEvent_t);
  decltype(&::cudaMemcpyAsync) memcpy_async;
  decltype(&::cudaMemGetInfo) mem_get_info;
  decltype(&::cudaGetDeviceCount) get_device_count;
  decltype(&::cudaDeviceGetByPCIBusId) device_by_pci;
  cudaError_t (*get_device_properties)(cudaDeviceProp*, int);
  cudaError_t (*malloc)(void**, std::size_t);
  decltype(&::cudaFree) free;
  decltype(&::cudaLaunchHostFunc) launch_host_func;
  cudaError_t (*host_alloc)(void**, std::size_t, unsigned);  // one of two overloads in the headers
  decltype(&::cudaFreeHost) free_host;
  decltype(&::cudaGetLastError) get_last_error;
  decltype(&::cudaGetErrorString) get_error_string;
};

// libcudart of the toolkit's major release: libtorch's own if it is loaded. Throws std::runtime_error if
// there is none. Thread-safe.
const CudaLibrary& cuda_library();

// A failed call of the runtime: its name and the reason.
class CudaError : public DeviceFailure {
 public:
  CudaError(const char* call, const char* reason, cudaError_t code)
      : DeviceFailure(std::string(call) + ": " + reason, code == cudaErrorMemoryAllocation) {}
};

// Throws CudaError unless `result` is cudaSuccess. Clears the thread's last error, so that other users of the
// runtime are not blamed for it.
void check(const CudaLibrary& cuda, cudaError_t result, const char* call);

}  // namespace sailor
