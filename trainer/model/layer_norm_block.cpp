#include "trainer/model/layer_norm_block.h"

#include <cmath>

#include "trainer/model/attention.h"

namespace sailor {

LayerNormBlock::LayerNormBlock(const LayerContext& context, int index, const LayerNormBlockSpec& spec)
    : LayerNormBlock(ParameterMaker(context, index, parameters_), spec) {}

LayerNormBlock::LayerNormBlock(ParameterMaker make, const LayerNormBlockSpec& spec)
    : dropout_(make),
      size_(make.model().hidden / make.model().heads),
      scale_(spec.scaled_scores ? 1 / std::sqrt(static_cast<double>(size_)) : 1.0),
      window_(spec.window),
      activation_(spec.activation),
      norm1_(make, "norm1"),
      qkv_(make, "qkv"),
      proj_(make, "proj"),
      norm2_(make, "norm2"),
      fc1_(make, "fc1"),
      fc2_(make, "fc2") {}

at::Tensor LayerNormBlock::forward(const at::Tensor& x, const Batch& batch) {
  const at::Tensor attended = x + dropout_(attention(norm1_(x)), batch, DropoutSite::attention);
  return attended + dropout_(fc2_(activation_(fc1_(norm2_(attended)))), batch, DropoutSite::mlp);
}

at::Tensor LayerNormBlock::attention(const at::Tensor& x) const {
  const at::Tensor qkv = qkv_(x);
  const int64_t heads = qkv.size(2) / (3 * size_);
  return proj_(merge_heads(attend(split_heads(qkv, heads, heads), scale_, window_)));
}

}  // namespace sailor
