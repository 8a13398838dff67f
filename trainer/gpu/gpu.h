// The GPU of a process: its selection, its device, and the plane over its memory.
//
//     const std::unique_ptr<Gpu> gpu = open_gpu({.index_on_node = slot.gpu, .rank = slot.rank, .ranks = n});
//     if (gpu) { const ComputeOn here(gpu->device()); ... }       // else processors compute
//
// One build works on nodes with and without GPUs: CUDA's libraries are only loaded if there is a driver. A
// build without CUDA (SAILOR_CUDA) never finds a GPU.
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
  // Communicators over GPU memory, on top of a factory with the same ranks, which outlives it.
  virtual std::unique_ptr<CommFactory> plane(CommFactory& below, const CommOptions& options) = 0;
  virtual std::string name() const = 0;  // product name
};

struct GpuWish {
  // Among the GPUs that this process may use, in the order of PCI addresses, as in plans; -1: any, by rank.
  int index_on_node = -1;
  int rank = 0;
  // number of ranks on this node that select a GPU without an index: each gets its own, or none does
  int ranks = 1;
};

// Nothing if ranks compute on processors: no GPU, no driver, or SAILOR_DEVICE=cpu in the environment. With
// SAILOR_DEVICE=shared, indices and ranks are modulo the number of GPUs. Throws std::runtime_error, with what
// to do, if there is a driver but the GPU cannot be used; DeviceFailure if that is an error of the GPU.
std::unique_ptr<Gpu> open_gpu(const GpuWish& wish);
// Number of GPUs that this process may compute on; 0 if open_gpu() finds none. Throws std::runtime_error.
int gpu_count();

}  // namespace sailor
