// The updates of kernels.h for tensors on a device, with libtorch's operators, or in one pass by a kernel.
// The same formulas; rounding is the device's. Enqueued on the calling thread's stream.
#pragma once

#include <ATen/ATen.h>

#include <vector>

#include "trainer/optim/kernels.h"

namespace sailor {

// A range of elements: all 1-D with equal length. `rounded`, if defined, receives `value` in its own type.
struct UpdatedTensors {
  at::Tensor value, rounded, gradient;
  std::vector<at::Tensor> states;  // of AdamW m, v; of Muon and SGD momentum, or none
};

// Updates all `runs` with these coefficients.
void adamw_by_operators(const std::vector<UpdatedTensors>& runs, const AdamWCoefficients& c);
// `directions`: one of each run.
void muon_directions_by_operators(const std::vector<UpdatedTensors>& runs,
                                  const std::vector<at::Tensor>& directions, const MuonCoefficients& c);
void muon_by_operators(const std::vector<UpdatedTensors>& runs, const std::vector<at::Tensor>& directions,
                       const MuonCoefficients& c);
void sgd_by_operators(const std::vector<UpdatedTensors>& runs, const SgdCoefficients& c);

}  // namespace sailor
