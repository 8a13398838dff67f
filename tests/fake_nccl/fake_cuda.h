// A CUDA runtime without a GPU: device memory is host memory, a stream is a thread that does one thing after
// the other, an event is reached when its stream gets there. Thread-safe.
#pragma once

#include <functional>

#include "trainer/comm/nccl/cuda_library.h"

namespace sailor::fake {

// The table that the plane is given; lives as long as the process.
const CudaLibrary& cuda();

// The calling thread's device; 0 before it has set one, which therefore no rank of a test should have.
int current_device();
// Lets `stream` do this when it gets there, as a kernel would be launched.
void enqueue(cudaStream_t stream, std::function<void()> kernel);

}  // namespace sailor::fake
