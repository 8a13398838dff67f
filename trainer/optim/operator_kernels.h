// The updates of kernels.h by libtorch's operators, for tensors on a device, which the loops over plain
// memory cannot reach. The same formulas; roundings are the device's. Enqueued on the calling thread's
// stream.
#pragma once

#include <ATen/ATen.h>

#include <vector>

#include "trainer/optim/kernels.h"

namespace sailor {

// One run of elements: all 1-D and of one length. `rounded`, where defined, receives `value` in its own type.
struct UpdatedTensors {
  at::Tensor value, rounded, gradient;
  std::vector<at::Tensor> states;  // of AdamW m, v; of SGD momentum, or none
};

// All of `runs` with these coefficients; with libtorch 2.x in one kernel.
void adamw_by_operators(const std::vector<UpdatedTensors>& runs, const AdamWCoefficients& c);
void sgd_by_operators(const std::vector<UpdatedTensors>& runs, const SgdCoefficients& c);

}  // namespace sailor
