// The first and the last layer of a decoder.
#pragma once

#include <ATen/ATen.h>

#include "trainer/model/dropout.h"
#include "trainer/model/layer.h"
#include "trainer/model/norms.h"
#include "trainer/model/parameter_maker.h"
#include "trainer/model/tensor_parallel.h"

namespace sailor {

// Rows of the token matrix, scaled, plus learned positions if the model has them.
class Embedding : public Layer {
 public:
  explicit Embedding(const LayerContext& context);
  at::Tensor forward(const at::Tensor& x, const Batch& batch) override;

 private:
  explicit Embedding(ParameterMaker make);
  // Rows of the learned positions, of the tokens that this rank has.
  at::Tensor positions(const Batch& batch, const TensorParallel& tp) const;

  Communicator* tp_;
  Communicator* cp_;
  Dropout dropout_;
  double scale_;
  int64_t offset_;  // of the position of the first token
  at::Tensor token_, position_;
};

// Final norm, logits and their loss.
class Head : public Layer {
 public:
  explicit Head(const LayerContext& context);
  at::Tensor forward(const at::Tensor& x, const Batch& batch) override;
  at::Tensor logits(const at::Tensor& x) override;

 private:
  explicit Head(ParameterMaker make);
  at::Tensor project(const at::Tensor& normed, const TensorParallel& tp) const;

  int64_t vocabulary_;
  Communicator* tp_;
  Communicator* cp_;
  double scale_, soft_cap_, z_loss_;
  NormLayer norm_;
  at::Tensor matrix_;
};

}  // namespace sailor
