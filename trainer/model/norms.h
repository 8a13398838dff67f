// Normalizations over the last dimension, with their parameters.
#pragma once

#include <ATen/ATen.h>

#include <string>

#include "trainer/model/parameter_maker.h"
#include "trainer/model/tensor_parallel.h"

namespace sailor {

struct NormedStream {
  at::Tensor stream, normed;
};

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
  at::Tensor operator()(const at::Tensor& x) const { return after_adding(x, {}).normed; }
  // The residual stream x + addition (undefined: x), and its norm, in one pass each way. What else reads the
  // stream reads this one: then its gradient is added in the same pass.
  NormedStream after_adding(const at::Tensor& x, const at::Tensor& addition) const;
};

// x / sqrt(mean of squares + epsilon) * weight, or if zero-centred * (1 + weight). `weight` may be in fp32
// where x has 16 bits. With `tp` the last dimension is split over its members in
// equal parts, of x and of the weight, and the mean is that of all parts.
at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight, bool zero_centred, double epsilon,
                    Communicator* tp = nullptr);

// The norms of queries and keys after the split into heads (ModelSpec::qk_norm).
class QueryKeyNorm {
 public:
  // Takes `query_norm.weight` and `key_norm.weight` if the layer has them.
  explicit QueryKeyNorm(ParameterMaker& make);
  bool is_there() const { return kind_ != QkNorm::none; }
  // `query` and `key` are [batch, heads, tokens, head size], inside of a region of `tp`.
  void apply(at::Tensor& query, at::Tensor& key, const TensorParallel& tp) const;

 private:
  QkNorm kind_;
  bool zero_centred_;
  double epsilon_;
  at::Tensor query_weight_, key_weight_;
};

}  // namespace sailor
