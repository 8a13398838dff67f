// A CUDA runtime without a GPU: device memory is host memory, a stream is a thread that runs operations in
// order, an event is reached when its stream reaches it. Thread-safe.
#pragma once

#include <functional>
#include <set>

#include "trainer/comm/nccl/cuda_library.h"

namespace sailor::fake {

// The table for the plane; lives as long as the process.
const CudaLibrary& cuda();

// The devices on which this process has a context: on a real one it takes half a gigabyte. Forgets them. One
// on device 0 is a violation, too (fault_script.h).
std::set<int> take_contexts();
// What cudaMemGetInfo says of the 1 GiB of every device.
void set_free_bytes(std::size_t bytes);
// Calls of cudaHostAlloc so far.
int host_allocations();
// The calling thread's device; 0 before it has set one, so no rank of a test should use 0.
int current_device();
// Loads code to a device: waits for all that is enqueued there, and meanwhile nobody else gets memory. A wait
// of half a minute is a violation (fault_script.h), and ends.
void load_code(int device);
bool loads_code(int device);
// Makes `stream` run this in order, like a kernel.
void enqueue(cudaStream_t stream, std::function<void()> kernel);

}  // namespace sailor::fake
