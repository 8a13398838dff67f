// The block of the first transformers: attention over equal heads and an MLP of two matrices, each after a
// LayerNorm and with a residual connection. A LayerNormBlockSpec has the differences between the families
// that use it; their parameters are norm1, qkv, proj, norm2, fc1, fc2.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>

#include "trainer/model/dropout.h"
#include "trainer/model/layer.h"
#include "trainer/model/linear.h"
#include "trainer/model/norms.h"
#include "trainer/model/parameter_maker.h"

namespace sailor {

struct LayerNormBlockSpec {
  at::Tensor (*activation)(const at::Tensor&) = nullptr;  // of the MLP
  bool scaled_scores = true;                              // by 1 / sqrt(head size)
  int64_t window = 0;                                     // as for attend(); 0 = all previous tokens
};

class LayerNormBlock : public Layer {
 public:
  LayerNormBlock(const LayerContext& context, int index, const LayerNormBlockSpec& spec);
  at::Tensor forward(const at::Tensor& x, const Batch& batch) override;

 private:
  LayerNormBlock(ParameterMaker make, const LayerNormBlockSpec& spec);
  at::Tensor attention(const at::Tensor& x) const;

  Dropout dropout_;
  int64_t size_;  // of a head
  double scale_;
  int64_t window_;
  at::Tensor (*activation_)(const at::Tensor&);
  LayerNorm norm1_;
  OutputSplitLinear qkv_;
  InputSplitLinear proj_;
  LayerNorm norm2_;
  OutputSplitLinear fc1_;
  InputSplitLinear fc2_;
};

}  // namespace sailor
