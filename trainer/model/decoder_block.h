// A transformer block: attention and MLP, each between norms and with a residual connection, as the choices
// of its model say (ModelSpec). planner/spec/layer_parameters.h lists its parameters.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <utility>

#include "trainer/model/dropout.h"
#include "trainer/model/layer.h"
#include "trainer/model/linear.h"
#include "trainer/model/norms.h"
#include "trainer/model/parameter_maker.h"
#include "trainer/model/rotary.h"

namespace sailor {

class DecoderBlock : public Layer {
 public:
  DecoderBlock(const LayerContext& context, int index);
  at::Tensor forward(const at::Tensor& x, const Batch& batch) override;
  void recompute(Recompute level) override { recompute_ = level; }
  void around_recomputation(AroundCall around) override { around_ = std::move(around); }

 private:
  explicit DecoderBlock(ParameterMaker make);
  at::Tensor attention(const OperatorInput& x, const Batch& batch, const TensorParallel& tp) const;
  at::Tensor mlp(const OperatorInput& x, const Batch& batch, const TensorParallel& tp) const;
  RecomputedPtr again(TensorCall compute) const;
  // The result of a norm of the stream, for a product.
  OperatorInput normed(const NormedStream& both, const NormLayer& norm) const;
  // What is added to the residual stream.
  at::Tensor added(const at::Tensor& result, const NormLayer& norm, const Batch& batch,
                   const TensorParallel& tp, DropoutSite site) const;

  int layer_;
  Communicator* tp_;
  Communicator* cp_;
  int ring_;
  Dropout dropout_;
  bool parallel_, shared_norm_, gated_;
  double residual_scale_;
  int64_t heads_, kv_heads_;  // whose attention this rank computes
  double score_scale_, soft_cap_;
  int64_t window_;
  Recompute recompute_ = Recompute::none;
  AroundCall around_;
  Activation activation_;
  RotaryTable rotary_;
  // In the order of the list of parameters.
  NormLayer norm1_;
  OutputSplitLinear qkv_;
  QueryKeyNorm query_key_norm_;
  InputSplitLinear proj_;
  NormLayer norm1_after_, norm2_;
  OutputSplitLinear up_;  // with the gate, if there is one
  InputSplitLinear down_;
  NormLayer norm2_after_;
};

}  // namespace sailor
