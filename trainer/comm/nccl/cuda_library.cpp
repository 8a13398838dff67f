#include "trainer/comm/nccl/cuda_library.h"

#include <fmt/format.h>

#include "trainer/comm/nccl/shared_library.h"

namespace sailor {
namespace {

CudaLibrary load_cuda() {
  const SharedLibrary library(fmt::format("libcudart.so.{}", CUDART_VERSION / 1000));
  CudaLibrary cuda{};
  library.find("cudaGetDevice", cuda.get_device);
  library.find("cudaSetDevice", cuda.set_device);
  library.find("cudaStreamCreateWithFlags", cuda.stream_create);
  library.find("cudaStreamDestroy", cuda.stream_destroy);
  library.find("cudaStreamWaitEvent", cuda.stream_wait_event);
  library.find("cudaStreamSynchronize", cuda.stream_synchronize);
  library.find("cudaEventCreateWithFlags", cuda.event_create);
  library.find("cudaEventRecord", cuda.event_record);
  library.find("cudaEventQuery", cuda.event_query);
  library.find("cudaEventSynchronize", cuda.event_synchronize);
  library.find("cudaEventDestroy", cuda.event_destroy);
  library.find("cudaEventElapsedTime", cuda.event_elapsed_time);
  library.find("cudaMemcpyAsync", cuda.memcpy_async);
  library.find("cudaMemGetInfo", cuda.mem_get_info);
  library.find("cudaGetDeviceCount", cuda.get_device_count);
  library.find("cudaDeviceGetByPCIBusId", cuda.device_by_pci);
  library.find("cudaGetDeviceProperties", cuda.get_device_properties);
  library.find("cudaMalloc", cuda.malloc);
  library.find("cudaFree", cuda.free);
  library.find("cudaLaunchHostFunc", cuda.launch_host_func);
  library.find("cudaHostAlloc", cuda.host_alloc);
  library.find("cudaFreeHost", cuda.free_host);
  library.find("cudaGetLastError", cuda.get_last_error);
  library.find("cudaGetErrorString", cuda.get_error_string);
  return cuda;
}

}  // namespace

const CudaLibrary& cuda_library() {
  static const CudaLibrary cuda = load_cuda();
  return cuda;
}

void check(const CudaLibrary& cuda, cudaError_t result, const char* call) {
  if (result == cudaSuccess) return;
  static_cast<void>(cuda.get_last_error());
  throw CudaError(call, cuda.get_error_string(result), result);
}

}  // namespace sailor
