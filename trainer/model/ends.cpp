#include "trainer/model/ends.h"

#include "trainer/model/activations.h"
#include "trainer/model/key_value_cache.h"
#include "trainer/model/tensor_parallel.h"
#include "trainer/model/weight_product.h"

namespace sailor {

Embedding::Embedding(const LayerContext& context) : Embedding(ParameterMaker(context, 0, parameters_)) {}

Embedding::Embedding(ParameterMaker make)
    : tp_(make.context().tp),
      cp_(make.context().cp),
      dropout_(make),
      scale_(make.model().token_scale()),
      offset_(make.model().unused_positions),
      token_(make.take("token.weight")),
      position_(make.take_if_listed("position.weight")) {}

at::Tensor Embedding::forward(const at::Tensor&, const Batch& batch) {
  const TensorParallel tp{tp_, batch.split, cp_};
  at::Tensor sum = vocabulary_embedding(token_, batch.inputs, tp);
  if (scale_ != 1) sum = sum * scale_;
  if (position_.defined()) sum = sum + positions(batch, tp);
  return dropout_(sum, batch, DropoutSite::embedding, tp);
}

at::Tensor Embedding::positions(const Batch& batch, const TensorParallel& tp) const {
  const int64_t length = batch.inputs.size(1);
  if (batch.positions.defined()) return rows_of_table(position_, tp.own(batch.positions) + offset_);
  if (!tp.splits_tokens())
    return position_.narrow(0, offset_ + (batch.past ? batch.past->tokens() : 0), length);
  const at::Tensor of_sequence = at::arange(offset_, offset_ + length, batch.inputs.options());
  return rows_of_table(position_, tp.own(of_sequence.expand_as(batch.inputs)));
}

Head::Head(const LayerContext& context)
    : Head(ParameterMaker(context, context.model.layers + 1, parameters_)) {}

Head::Head(ParameterMaker make)
    : vocabulary_(make.model().vocabulary),
      tp_(make.context().tp),
      cp_(make.context().cp),
      scale_(make.model().logit_scale),
      soft_cap_(make.model().logit_soft_cap),
      z_loss_(make.context().z_loss),
      norm_(make, "norm"),
      matrix_(make.take_head()) {}

at::Tensor Head::project(const at::Tensor& normed, const TensorParallel& tp) const {
  at::Tensor logits = product_by_outputs(normed, matrix_, {}, tp);
  if (scale_ != 1) logits = logits * scale_;
  if (soft_cap_ > 0) logits = soft_capped(logits, soft_cap_);
  return logits;
}

at::Tensor Head::logits(const at::Tensor& x) {
  return project(norm_(x), {tp_});
}

at::Tensor Head::forward(const at::Tensor& x, const Batch& batch) {
  const TensorParallel tp{tp_, batch.split, cp_};
  const at::Tensor logits = project(norm_(x), tp);
  return vocabulary_cross_entropy(logits.reshape({-1, logits.size(-1)}),
                                  tp.in_region(batch.targets).reshape({-1}), vocabulary_, tp_,
                                  batch.step ? z_loss_ : 0);
}

}  // namespace sailor
