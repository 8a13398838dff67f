#include "trainer/model/attention.h"

#include <torch/csrc/autograd/custom_function.h>

#include <cmath>
#include <limits>

#include "trainer/kernels/traffic.h"
#include "trainer/model/element_types.h"
#include "trainer/model/matrix_product.h"
#include "trainer/model/torch_compat.h"

namespace sailor {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Variable;
using torch::autograd::variable_list;

// What is added to the scores: 0 where the column's token is one of the `window` up to the row's, else
// -infinity.
at::Tensor window_mask(int64_t tokens, int64_t window, const at::TensorOptions& options) {
  const at::Tensor near = at::ones({tokens, tokens}, options.dtype(at::kBool)).tril().triu(1 - window);
  return at::zeros({tokens, tokens}, options)
      .masked_fill_(near.logical_not(), -std::numeric_limits<double>::infinity());
}

// With the soft cap c: t = tanh(scale q k^T / c), p = softmax(c t + mask), y = p v. Keeps q, k and v; the
// backward computes t and p again.
struct CappedAttention : torch::autograd::Function<CappedAttention> {
  struct Scores {
    at::Tensor tanh, softmax;
  };
  static Scores scores(const at::Tensor& query, const at::Tensor& key, double scale, int64_t window,
                       double cap) {
    const at::Tensor raw = at::matmul(query, key.transpose(-1, -2));
    const at::Tensor tanh =
        (has_16_bits(raw.scalar_type()) ? raw.to(at::kFloat) : raw).mul_(scale / cap).tanh_();
    return {tanh, (tanh * cap).add_(window_mask(query.size(2), window, tanh.options())).softmax(-1)};
  }
  static Variable forward(AutogradContext* context, const Variable& query, const Variable& key,
                          const Variable& value, double scale, int64_t window, double cap) {
    context->save_for_backward({query, key, value});
    context->saved_data["scale"] = scale;
    context->saved_data["window"] = window;
    context->saved_data["cap"] = cap;
    return at::matmul(scores(query, key, scale, window, cap).softmax.to(value.scalar_type()), value);
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &query = saved[0], key = saved[1], value = saved[2], g = gradients[0];
    const double scale = context->saved_data["scale"].toDouble(), cap = context->saved_data["cap"].toDouble();
    const auto [tanh, p] = scores(query, key, scale, context->saved_data["window"].toInt(), cap);
    const at::Tensor for_value = at::matmul(p.to(g.scalar_type()).transpose(-1, -2), g);
    at::Tensor for_scores = at::matmul(g, value.transpose(-1, -2)).to(p.scalar_type());
    for_scores = (for_scores - (for_scores * p).sum(-1, true)).mul_(p);
    for_scores = for_scores.mul_(1 - tanh.square()).mul_(scale).to(query.scalar_type());
    return {at::matmul(for_scores, key),
            at::matmul(for_scores.transpose(-1, -2), query),
            for_value,
            Variable(),
            Variable(),
            Variable()};
  }
};

}  // namespace

at::Tensor repeat_heads(const at::Tensor& x, int64_t times) {
  if (times == 1) return x;
  return x.unsqueeze(2)
      .expand({x.size(0), x.size(1), times, x.size(2), x.size(3)})
      .reshape({x.size(0), x.size(1) * times, x.size(2), x.size(3)});
}

at::Tensor merge_heads(const at::Tensor& mixed) {
  // Attention kernels of devices write token by token: there it is a view.
  const kernels::RecordedKernel kernel("merge", 0, 0);
  return mixed.transpose(1, 2).reshape({mixed.size(0), mixed.size(2), mixed.size(1) * mixed.size(3)});
}

at::Tensor attend(const Heads& heads, double scale, int64_t window, double soft_cap) {
  const kernels::RecordedKernel kernel("attention",
                                       (2 * heads.query.numel() + heads.key.numel() + heads.value.numel()) *
                                           static_cast<int64_t>(heads.query.element_size()));
  if (needs_fp32_products(heads.query)) {
    const Heads wide = {heads.query.to(at::kFloat), heads.key.to(at::kFloat), heads.value.to(at::kFloat)};
    return attend(wide, scale, window, soft_cap).to(heads.query.scalar_type());
  }
  const int64_t tokens = heads.query.size(2);
  const bool whole = window == 0 || window >= tokens;
  const bool in_groups = whole && soft_cap == 0 && attends_in_groups(heads.query);
  const int64_t times = in_groups ? 1 : heads.query.size(1) / heads.key.size(1);
  const at::Tensor key = repeat_heads(heads.key, times), value = repeat_heads(heads.value, times);
  if (soft_cap > 0)
    return CappedAttention::apply(heads.query, key, value, scale, whole ? tokens : window, soft_cap);
  // The library's attention divides by the root of the head size.
  const double factor = scale * std::sqrt(static_cast<double>(heads.query.size(3)));
  const at::Tensor query = std::abs(factor - 1) < 1e-12 ? heads.query : heads.query * factor;
  if (whole) return causal_attention(query, key, value);
  return masked_attention(query, key, value, window_mask(tokens, window, query.options()));
}

at::Tensor attend_to_past(const Heads& heads, double scale, int64_t window, double soft_cap) {
  const int64_t queries = heads.query.size(2), keys = heads.key.size(2);
  if (queries == keys) return attend(heads, scale, window, soft_cap);
  const int64_t times = heads.query.size(1) / heads.key.size(1), past = keys - queries;
  const bool wide = needs_fp32_products(heads.query);
  const auto operand = [&](const at::Tensor& x) { return wide ? x.to(at::kFloat) : x; };
  const at::Tensor key = repeat_heads(operand(heads.key), times);
  at::Tensor scores = at::matmul(operand(heads.query), key.transpose(-1, -2));
  if (has_16_bits(scores.scalar_type())) scores = scores.to(at::kFloat);
  scores.mul_(scale);
  if (soft_cap > 0) scores.div_(soft_cap).tanh_().mul_(soft_cap);
  at::Tensor visible = at::ones({queries, keys}, scores.options().dtype(at::kBool)).tril(past);
  if (window > 0) visible = visible.triu(past + 1 - window);
  scores.masked_fill_(visible.logical_not(), -std::numeric_limits<double>::infinity());
  const at::Tensor value = repeat_heads(operand(heads.value), times);
  return at::matmul(scores.softmax(-1).to(value.scalar_type()), value).to(heads.query.scalar_type());
}

at::Tensor attend_in_documents(const Heads& heads, const std::vector<int64_t>& documents, double scale,
                               int64_t window, double soft_cap) {
  const int64_t batch = heads.query.size(0), tokens = heads.query.size(2);
  // [batch, heads, tokens, size] -> [1, heads, tokens of the document, size] of each.
  const auto split = [&](const at::Tensor& x) {
    return x.transpose(0, 1)
        .reshape({1, x.size(1), batch * tokens, x.size(3)})
        .split_with_sizes(documents, 2);
  };
  const std::vector<at::Tensor> query = split(heads.query), key = split(heads.key),
                                value = split(heads.value);
  std::vector<at::Tensor> mixed;
  for (std::size_t i = 0; i < documents.size(); ++i)
    mixed.push_back(merge_heads(attend({query[i], key[i], value[i]}, scale, window, soft_cap)));
  return at::cat(mixed, 1).view({batch, tokens, -1});
}

}  // namespace sailor
