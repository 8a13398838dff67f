// The first and the last layer, which differ between families only in their positions and their norm.
#pragma once

#include <ATen/ATen.h>

#include "trainer/model/dropout.h"
#include "trainer/model/layer.h"
#include "trainer/model/norms.h"
#include "trainer/model/parameter_maker.h"

namespace sailor {

class TokenEmbedding : public Layer {
 public:
  explicit TokenEmbedding(const LayerContext& context);
  at::Tensor forward(const at::Tensor& x, const Batch& batch) override;

 protected:
  at::Tensor rows(const Batch& batch) const;
  at::Tensor dropout(const at::Tensor& sum, const Batch& batch) const;
  // For a class that adds parameters after the matrix.
  ParameterMaker make_first(const LayerContext& context) { return {context, 0, parameters_}; }

 private:
  Communicator* tp_;
  Dropout dropout_;
  at::Tensor token_;
};

// Adds a learned position embedding.
class PositionedEmbedding : public TokenEmbedding {
 public:
  explicit PositionedEmbedding(const LayerContext& context);
  at::Tensor forward(const at::Tensor& x, const Batch& batch) override;

 private:
  int64_t offset_;  // of the row of the first token
  at::Tensor position_;
};

// The logits of normalized activations, and their loss.
class VocabularyProjection {
 public:
  explicit VocabularyProjection(ParameterMaker& make);
  at::Tensor logits(const at::Tensor& normed) const;
  at::Tensor loss(const at::Tensor& normed, const Batch& batch) const;

 private:
  int64_t vocabulary_;
  Communicator* tp_;
  at::Tensor matrix_;
};

template <class Norm>
class NormedHead : public Layer {
 public:
  explicit NormedHead(const LayerContext& context)
      : NormedHead(ParameterMaker(context, context.model.layers + 1, parameters_)) {}

  at::Tensor forward(const at::Tensor& x, const Batch& batch) override {
    return projection_.loss(norm_(x), batch);
  }
  at::Tensor logits(const at::Tensor& x) override { return projection_.logits(norm_(x)); }

 private:
  explicit NormedHead(ParameterMaker make) : norm_(make, "norm"), projection_(make) {}

  Norm norm_;
  VocabularyProjection projection_;
};

}  // namespace sailor
