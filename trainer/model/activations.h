// The activation functions of the model families, for every type of elements. Differentiable. Safe from any
// thread.
#pragma once

#include <ATen/ATen.h>

namespace sailor {

at::Tensor gelu_by_erf(const at::Tensor& x);
at::Tensor gelu_by_tanh(const at::Tensor& x);  // the approximation of the first transformers
at::Tensor swish(const at::Tensor& x);         // x sigmoid(x), called SiLU too
at::Tensor rectified(const at::Tensor& x);     // ReLU

}  // namespace sailor
