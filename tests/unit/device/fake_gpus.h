// Trainers whose ranks each have a GPU of the fake CUDA runtime: the NCCL plane, streams, events and pinned
// memory, with tensors in host memory.
#pragma once

#include "tests/fake_nccl/fake_cuda.h"
#include "tests/unit/nccl/nccl_job.h"
#include "trainer/comm/nccl/cuda_device.h"

namespace sailor {

// The device of a rank, and its plane on top of a factory in host memory.
class FakeGpu {
 public:
  FakeGpu(CommFactory& below, CommOptions options)
      : device_(device_of(below.rank()), fake::cuda(), CudaDevice::Tensors::on_host),
        factory_(below, device_of(below.rank()), options, fake::libraries()) {}

  DevicePlane plane() { return {device_, factory_}; }
  void abort() noexcept { factory_.abort(); }

 private:
  CudaDevice device_;
  NcclFactory factory_;
};

}  // namespace sailor
