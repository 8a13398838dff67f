// The activation functions of decoders, for every type of elements. Differentiable. Safe from any
// thread.
#pragma once

#include <ATen/ATen.h>

#include "planner/spec/model_spec.h"

namespace sailor {

at::Tensor gelu_by_erf(const at::Tensor& x);
at::Tensor gelu_by_tanh(const at::Tensor& x);  // the approximation of the first transformers
at::Tensor swish(const at::Tensor& x);         // x sigmoid(x), called SiLU too
at::Tensor rectified(const at::Tensor& x);     // ReLU

// cap tanh(x / cap): x near 0, and never beyond the cap.
at::Tensor soft_capped(const at::Tensor& x, double cap);

using ActivationFunction = at::Tensor (*)(const at::Tensor& x);
ActivationFunction activation_of(Activation activation);

}  // namespace sailor
