#include "trainer/model/decoder_block.h"

#include "trainer/model/activations.h"
#include "trainer/model/attention.h"
#include "trainer/model/context_parallel.h"
#include "trainer/model/key_value_cache.h"
#include "trainer/model/ring_attention.h"

namespace sailor {
namespace {

RotaryTable rotary_of(const ParameterMaker& make) {
  const ModelSpec& model = make.model();
  if (model.learned_positions()) return {};
  return {make.context(), model.local_rotary_base > 0 && model.attends_locally(make.layer())};
}

}  // namespace

DecoderBlock::DecoderBlock(const LayerContext& context, int index)
    : DecoderBlock(ParameterMaker(context, index, parameters_)) {}

DecoderBlock::DecoderBlock(ParameterMaker make)
    : layer_(make.layer()),
      tp_(make.context().tp),
      cp_(make.context().cp),
      ring_(make.context().ring()),
      dropout_(make),
      parallel_(make.model().parallel_residual),
      shared_norm_(make.model().shared_norm),
      gated_(make.model().gated_mlp),
      residual_scale_(make.model().residual_scale),
      heads_(make.model().heads / make.model().head_parts(make.context().shape())),
      kv_heads_(make.model().key_value_heads() / make.model().head_parts(make.context().shape())),
      score_scale_(make.model().score_scale()),
      soft_cap_(make.model().attention_soft_cap),
      window_(make.model().attends_locally(make.layer()) ? make.model().attention_window : 0),
      activation_(make.model().activation),
      rotary_(rotary_of(make)),
      norm1_(make, "norm1"),
      qkv_(make, "qkv"),
      query_key_norm_(make),
      proj_(make, "proj"),
      norm1_after_(make, "norm1_after"),
      norm2_(make, "norm2"),
      up_(make, gated_ ? "gate_up" : "fc1"),
      down_(make, gated_ ? "down" : "fc2"),
      norm2_after_(make, "norm2_after") {}

at::Tensor DecoderBlock::added(const at::Tensor& result, const NormLayer& norm, const Batch& batch,
                               const TensorParallel& tp, DropoutSite site) const {
  const at::Tensor dropped = dropout_(norm(result), batch, site, tp);
  return residual_scale_ == 1 ? dropped : dropped * residual_scale_;
}

at::Tensor DecoderBlock::forward(const at::Tensor& x, const Batch& batch) {
  const TensorParallel tp{tp_, batch.split, cp_, ring_};
  const NormedStream first = norm1_.after_adding(x, {});
  const at::Tensor attended =
      added(attention(normed(first, norm1_), batch, tp), norm1_after_, batch, tp, DropoutSite::attention);
  if (!parallel_) {
    const NormedStream second = norm2_.after_adding(first.stream, attended);
    return second.stream +
           added(mlp(normed(second, norm2_), batch, tp), norm2_after_, batch, tp, DropoutSite::mlp);
  }
  const NormedStream second = shared_norm_ ? first : norm2_.after_adding(first.stream, {});
  const OperatorInput into_mlp = normed(second, shared_norm_ ? norm1_ : norm2_);
  return second.stream + attended +
         added(mlp(into_mlp, batch, tp), norm2_after_, batch, tp, DropoutSite::mlp);
}

RecomputedPtr DecoderBlock::again(TensorCall compute) const {
  if (!around_) return recomputed(std::move(compute));
  return recomputed([around = around_, compute = std::move(compute)] { return around(compute); });
}

OperatorInput DecoderBlock::normed(const NormedStream& both, const NormLayer& norm) const {
  if (recompute_ < Recompute::light || !norm.is_there()) return both.normed;
  return {both.normed, again([&norm, stream = both.stream.detach()] { return norm(stream); })};
}

at::Tensor DecoderBlock::attention(const OperatorInput& x, const Batch& batch,
                                   const TensorParallel& tp) const {
  const int64_t first = batch.past ? batch.past->tokens() : 0;
  const bool at_once = !query_key_norm_.is_there();
  Heads heads = split_heads(gather_tokens(qkv_(x, tp, batch.later), tp), heads_, kv_heads_,
                            at_once ? rotary_ : RotaryTable(), first);
  if (!at_once) {
    query_key_norm_.apply(heads.query, heads.key, tp);
    heads.query = rotary_.rotate(heads.query, first);
    heads.key = rotary_.rotate(heads.key, first);
  }
  if (batch.past) {
    const Heads all = batch.past->extended(layer_, heads);
    return proj_(merge_heads(attend_to_past(all, score_scale_, window_, soft_cap_)), tp);
  }
  const at::Tensor mixed =
      ring_ > 1 ? merge_heads(ring_attend(heads, tp, batch.documents, {score_scale_, soft_cap_}, window_))
      : batch.documents.empty()
          ? merge_heads(attend(heads, score_scale_, window_, soft_cap_))
          : attend_in_documents(heads, batch.documents, score_scale_, window_, soft_cap_);
  return proj_(scatter_tokens(mixed, tp), tp, batch.later);
}

at::Tensor DecoderBlock::mlp(const OperatorInput& x, const Batch& batch, const TensorParallel& tp) const {
  OperatorInput inner = up_(x, tp, batch.later);
  if (recompute_ < Recompute::light) return down_(activated(inner, activation_, gated_), tp, batch.later);
  if (recompute_ >= Recompute::mlp)
    inner.again = again([this, tp, later = x.again, kept = x.again ? at::Tensor() : x.value.detach()] {
      return up_(later ? later->get() : kept, tp);
    });
  const at::Tensor result = activated(inner, activation_, gated_);
  const at::Tensor kept = inner.again ? at::Tensor() : inner.value.detach();
  return down_({result, again([this, later = inner.again, kept] {
                  return activated(later ? later->get() : kept, activation_, gated_);
                })},
               tp, batch.later);
}

}  // namespace sailor
