// The first and the last layer, which differ between families only by their positions and their norm.
#pragma once

#include <ATen/ATen.h>

#include <string>

#include "trainer/model/dropout.h"
#include "trainer/model/layer.h"
#include "trainer/model/norms.h"
#include "trainer/model/parameter_maker.h"

namespace sailor {

class TokenEmbedding : public Layer {
 public:
  // `stored` is the tensor's name.
  TokenEmbedding(const LayerContext& context, const std::string& stored);
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

// Adds a learned row for every position; the first `offset` rows belong to none.
class PositionedEmbedding : public TokenEmbedding {
 public:
  PositionedEmbedding(const LayerContext& context, const std::string& stored_tokens,
                      const std::string& stored_positions, int64_t offset = 0);
  at::Tensor forward(const at::Tensor& x, const Batch& batch) override;

 private:
  int64_t offset_;
  at::Tensor position_;
};

// The logits of normed activations and their loss.
class VocabularyProjection {
 public:
  VocabularyProjection(ParameterMaker& make, const std::string& stored, const std::string& stored_tied);
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
  NormedHead(const LayerContext& context, const std::string& stored_norm, const std::string& stored_matrix,
             const std::string& stored_tied)
      : NormedHead(ParameterMaker(context, context.model.layers + 1, parameters_), stored_norm, stored_matrix,
                   stored_tied) {}

  at::Tensor forward(const at::Tensor& x, const Batch& batch) override {
    return projection_.loss(norm_(x), batch);
  }
  at::Tensor logits(const at::Tensor& x) override { return projection_.logits(norm_(x)); }

 private:
  NormedHead(ParameterMaker make, const std::string& stored_norm, const std::string& stored_matrix,
             const std::string& stored_tied)
      : norm_(make, "norm", stored_norm), projection_(make, stored_matrix, stored_tied) {}

  Norm norm_;
  VocabularyProjection projection_;
};

}  // namespace sailor
