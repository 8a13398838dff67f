// The GPU of a process: which one it is, what computes on it, and the plane over its memory.
//
//     const std::unique_ptr<Gpu> gpu = open_gpu({.index_on_node = slot.gpu, .rank = slot.rank, .ranks = n});
//     if (gpu) { const ComputeOn here(gpu->device()); ... }       // else processors compute
//
// One build serves nodes with and without GPUs: CUDA's libraries are looked for where there is a driver. A
// build without CUDA (SAILOR_CUDA) never finds one.
#pragma once

#include <memory>
#include <string>

#include "trainer/comm/communicator.h"
#include "trainer/comm/device.h"

namespace sailor {

class Gpu {
 public:
  virtual ~Gpu() = default;
  virtual Device& device() = 0;  // lives as long as this
  // Communicators over the memory of GPUs, above a factory with the same ranks, which outlives it.
  virtual std::unique_ptr<CommFactory> plane(CommFactory& below, const CommOptions& options) = 0;
  virtual std::string name() const = 0;  // as its maker calls it
};

struct GpuWish {
  int index_on_node = -1;  // in the order of PCI addresses, as plans count; -1: any, by rank
  int rank = 0;
  int ranks = 1;  // that look for one on this node when no index is given: each gets its own, or nobody one
};

// Nothing where ranks compute on processors: no GPU, no driver, or SAILOR_DEVICE=cpu in the environment.
// Throws std::runtime_error, with what to do, where there is a driver and the GPU cannot be used all the
// same.
std::unique_ptr<Gpu> open_gpu(const GpuWish& wish);
// GPUs that this process may compute on; 0 where open_gpu() finds nothing. Throws std::runtime_error.
int gpu_count();

}  // namespace sailor
