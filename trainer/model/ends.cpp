#include "trainer/model/ends.h"

#include "trainer/model/tensor_parallel.h"
#include "trainer/model/weight_product.h"

namespace sailor {

TokenEmbedding::TokenEmbedding(const LayerContext& context)
    : tp_(context.tp), dropout_(make_first(context)), token_(make_first(context).take("token.weight")) {}

at::Tensor TokenEmbedding::rows(const Batch& batch) const {
  return vocabulary_embedding(token_, batch.inputs, tp_);
}

at::Tensor TokenEmbedding::dropout(const at::Tensor& sum, const Batch& batch) const {
  return dropout_(sum, batch, DropoutSite::embedding);
}

at::Tensor TokenEmbedding::forward(const at::Tensor&, const Batch& batch) {
  return dropout(rows(batch), batch);
}

PositionedEmbedding::PositionedEmbedding(const LayerContext& context)
    : TokenEmbedding(context),
      offset_(model_family(context.model.family).unused_positions),
      position_(make_first(context).take("position.weight")) {}

at::Tensor PositionedEmbedding::forward(const at::Tensor&, const Batch& batch) {
  return dropout(rows(batch) + position_.narrow(0, offset_, batch.inputs.size(1)), batch);
}

VocabularyProjection::VocabularyProjection(ParameterMaker& make)
    : vocabulary_(make.model().vocabulary), tp_(make.context().tp), matrix_(make.take_head()) {}

at::Tensor VocabularyProjection::logits(const at::Tensor& normed) const {
  return product_by_outputs(normed, matrix_, {}, tp_);
}

at::Tensor VocabularyProjection::loss(const at::Tensor& normed, const Batch& batch) const {
  const at::Tensor rows = logits(normed.reshape({-1, normed.size(-1)}));
  return vocabulary_cross_entropy(rows, batch.targets.reshape({-1}), vocabulary_, tp_);
}

}  // namespace sailor
