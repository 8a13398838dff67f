// The activation functions of decoders, for every type of elements. Differentiable. Safe from any
// thread.
#pragma once

#include <ATen/ATen.h>

#include "planner/spec/model_spec.h"
#include "trainer/model/recomputed.h"

namespace sailor {

// f(x), or if gated f(a) b for the pairs (a, b) of neighbours in the last dimension, which halves it.
at::Tensor activated(const OperatorInput& x, Activation activation, bool gated);

// cap tanh(x / cap): x near 0, and never beyond the cap.
at::Tensor soft_capped(const at::Tensor& x, double cap);

}  // namespace sailor
