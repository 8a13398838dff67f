#include "trainer/model/attention.h"

#include <cmath>
#include <limits>

#include "trainer/model/matrix_product.h"
#include "trainer/model/torch_compat.h"

namespace sailor {
namespace {

// [batch, kv heads, tokens, size] -> [batch, kv heads * times, tokens, size].
at::Tensor repeat_heads(const at::Tensor& x, int64_t times) {
  if (times == 1) return x;
  return x.unsqueeze(2)
      .expand({x.size(0), x.size(1), times, x.size(2), x.size(3)})
      .reshape({x.size(0), x.size(1) * times, x.size(2), x.size(3)});
}

// What is added to the scores: 0 where the column's token is one of the `window` up to the row's, else
// -infinity.
at::Tensor window_mask(int64_t tokens, int64_t window, const at::TensorOptions& options) {
  const at::Tensor near = at::ones({tokens, tokens}, options.dtype(at::kBool)).tril().triu(1 - window);
  return at::zeros({tokens, tokens}, options)
      .masked_fill_(near.logical_not(), -std::numeric_limits<double>::infinity());
}

}  // namespace

Heads split_heads(const at::Tensor& qkv, int64_t heads, int64_t kv_heads) {
  const int64_t batch = qkv.size(0), tokens = qkv.size(1), queries = heads / kv_heads;
  const int64_t size = qkv.size(2) / (heads + 2 * kv_heads);
  // [batch][kv head][query, ..., key, value][token][size]
  const at::Tensor parts = qkv.view({batch, tokens, kv_heads, queries + 2, size}).permute({0, 2, 3, 1, 4});
  return {parts.narrow(2, 0, queries).reshape({batch, heads, tokens, size}), parts.select(2, queries),
          parts.select(2, queries + 1)};
}

at::Tensor merge_heads(const at::Tensor& mixed) {
  return mixed.transpose(1, 2).reshape({mixed.size(0), mixed.size(2), mixed.size(1) * mixed.size(3)});
}

at::Tensor attend(const Heads& heads, double scale, int64_t window) {
  if (needs_fp32_products(heads.query)) {
    const Heads wide = {heads.query.to(at::kFloat), heads.key.to(at::kFloat), heads.value.to(at::kFloat)};
    return attend(wide, scale, window).to(heads.query.scalar_type());
  }
  const int64_t times = heads.query.size(1) / heads.key.size(1), tokens = heads.query.size(2);
  // The library's attention divides by the root of the head size.
  const double factor = scale * std::sqrt(static_cast<double>(heads.query.size(3)));
  const at::Tensor query = std::abs(factor - 1) < 1e-12 ? heads.query : heads.query * factor;
  const at::Tensor key = repeat_heads(heads.key, times), value = repeat_heads(heads.value, times);
  if (window == 0 || window >= tokens) return causal_attention(query, key, value);
  return masked_attention(query, key, value, window_mask(tokens, window, query.options()));
}

RotaryTable::RotaryTable(int64_t tokens, int64_t rotated, double base, const at::TensorOptions& options) {
  const at::Tensor pair = at::arange(rotated / 2, at::kDouble);
  const at::Tensor speed = (pair * (-2.0 * std::log(base) / static_cast<double>(rotated))).exp();
  const at::Tensor angle = at::arange(tokens, at::kDouble).unsqueeze(1) * speed;
  cosine = angle.cos().to(options);
  sine = angle.sin().to(options);
}

RotaryTable::RotaryTable(const LayerContext& context, int64_t rotated) {
  constexpr const char *kCosine = "rotary.cosine", *kSine = "rotary.sine";
  if (context.shared && context.shared->contains(kCosine)) {
    cosine = context.shared->at(kCosine);
    sine = context.shared->at(kSine);
    return;
  }
  *this = RotaryTable(context.model.sequence, rotated, context.model.rotary_base,
                      at::TensorOptions(context.device).dtype(context.dtype));
  if (!context.shared) return;
  (*context.shared)[kCosine] = cosine;
  (*context.shared)[kSine] = sine;
}

at::Tensor RotaryTable::rotate(const at::Tensor& x) const {
  const int64_t half = cosine.size(1), tokens = x.size(2), rest = x.size(3) - 2 * half;
  const at::Tensor c = cosine.narrow(0, 0, tokens), s = sine.narrow(0, 0, tokens);
  const at::Tensor a = x.narrow(3, 0, half), b = x.narrow(3, half, half);
  const at::Tensor turned_a = a * c - b * s, turned_b = b * c + a * s;
  if (rest == 0) return at::cat({turned_a, turned_b}, 3);
  return at::cat({turned_a, turned_b, x.narrow(3, 2 * half, rest)}, 3);
}

}  // namespace sailor
