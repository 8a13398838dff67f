// Normalizations over the last dimension, with their parameters.
#pragma once

#include <ATen/ATen.h>

#include <string>

#include "trainer/model/parameter_maker.h"

namespace sailor {

// layer: (x - mean) / sqrt(variance + epsilon) * weight + bias; rms: x / sqrt(mean of squares + epsilon) *
// weight, or zero-centred * (1 + weight). Without a weight it does nothing.
struct NormLayer {
  Norm kind = Norm::layer;
  at::Tensor weight, bias;
  double epsilon = 0;

  NormLayer() = default;
  // Takes `NAME.weight` and, of a layer norm, `NAME.bias`, if the layer has them.
  NormLayer(ParameterMaker& make, const std::string& name);
  bool is_there() const { return weight.defined(); }
  at::Tensor operator()(const at::Tensor& x) const;
};

// x / sqrt(mean of squares + epsilon) * weight. With `tp` the last dimension is split over its members in
// equal parts, of x and of the weight, and the mean is that of all parts.
at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight, double epsilon,
                    Communicator* tp = nullptr);

// The norms of queries and keys after the split into heads (ModelSpec::qk_norm).
class QueryKeyNorm {
 public:
  // Takes `query_norm.weight` and `key_norm.weight` if the layer has them.
  explicit QueryKeyNorm(ParameterMaker& make);
  // `query` and `key` are [batch, heads, tokens, head size].
  void apply(at::Tensor& query, at::Tensor& key) const;

 private:
  QkNorm kind_;
  bool zero_centred_;
  double epsilon_;
  Communicator* tp_;
  at::Tensor query_weight_, key_weight_;
};

}  // namespace sailor
