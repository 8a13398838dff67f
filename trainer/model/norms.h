// Normalizations over the last dimension, with their parameters.
#pragma once

#include <ATen/ATen.h>

#include <string>

#include "trainer/model/parameter_maker.h"

namespace sailor {

// (x - mean) / sqrt(variance + epsilon) * weight + bias
struct LayerNorm {
  at::Tensor weight, bias;
  double epsilon;

  // Takes `NAME.weight` and `NAME.bias`.
  LayerNorm(ParameterMaker& make, const std::string& name);
  at::Tensor operator()(const at::Tensor& x) const;
};

// x / sqrt(mean of squares + epsilon) * weight
struct RmsNorm {
  at::Tensor weight;
  double epsilon;

  RmsNorm(ParameterMaker& make, const std::string& name);
  at::Tensor operator()(const at::Tensor& x) const;
};

}  // namespace sailor
