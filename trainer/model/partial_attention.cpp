#include "trainer/model/partial_attention.h"

#include <algorithm>
#include <limits>

#include "trainer/model/attention.h"
#include "trainer/model/element_types.h"
#include "trainer/model/torch_compat.h"

namespace sailor {
namespace {

constexpr int64_t kMostScores = int64_t{1} << 24;  // that are in memory at once

// Those that fused kernels of processors want: as many heads of keys and values as of queries.
at::Tensor repeated_heads(const at::Tensor& x, const at::Tensor& query) {
  if (x.size(1) == query.size(1) || attends_in_groups(query)) return x;
  return repeat_heads(x, query.size(1) / x.size(1));
}
// [batch, kv heads * times, tokens, size] -> [batch, kv heads, tokens, size].
at::Tensor summed_heads(const at::Tensor& x, int64_t kv_heads) {
  if (x.size(1) == kv_heads) return x;
  return x.view({x.size(0), kv_heads, x.size(1) / kv_heads, x.size(2), x.size(3)}).sum(2);
}

bool is_fused(const Heads& heads, const AttentionRule& rule, const Visible& visible) {
  return rule.soft_cap == 0 && !visible.mask.defined() &&
         has_fused_parts(heads.query, heads.key, heads.value);
}

// Some rows of queries, with all heads of a query's group in one product: [batch, kv heads, times * rows,
// ..].
class Rows {
 public:
  Rows(const Heads& heads, const AttentionRule& rule, const Visible& visible)
      : heads_(heads),
        rule_(rule),
        visible_(visible),
        sum_(sum_type(heads.query.scalar_type())),
        times_(heads.query.size(1) / heads.key.size(1)),
        most_(std::max<int64_t>(
            1, kMostScores /
                   std::max<int64_t>(1, heads.query.size(0) * heads.query.size(1) * heads.key.size(2)))) {}

  int64_t most() const { return most_; }

  at::Tensor in_groups(const at::Tensor& x, int64_t first, int64_t count) const {
    return x.narrow(2, first, count).reshape({x.size(0), x.size(1) / times_, times_ * count, x.size(3)});
  }
  // The reverse, of `count` rows.
  at::Tensor by_head(const at::Tensor& x, int64_t count) const {
    return x.view({x.size(0), x.size(1) * times_, count, x.size(3)});
  }

  // [batch, heads, count, keys] after the cap, -infinity where nothing is seen; with a cap its tanh as well.
  at::Tensor scores(int64_t first, int64_t count, at::Tensor* tanh = nullptr) const {
    at::Tensor scores = by_head(
        at::matmul(in_groups(heads_.query, first, count), heads_.key.transpose(-1, -2)).to(sum_), count);
    scores.mul_(rule_.scale);
    if (rule_.soft_cap > 0) {
      scores.div_(rule_.soft_cap).tanh_();
      if (tanh) *tanh = scores.clone();
      scores.mul_(rule_.soft_cap);
    }
    const double none = -std::numeric_limits<double>::infinity();
    if (visible_.mask.defined())
      scores.masked_fill_(visible_.mask.narrow(0, first, count).logical_not(), none);
    else if (visible_.causal)
      scores.masked_fill_(
          at::ones({count, heads_.key.size(2)}, scores.options().dtype(at::kBool)).tril(first).logical_not_(),
          none);
    return scores;
  }
  // Of scores, [batch, heads, count, keys].
  static at::Tensor probabilities(const at::Tensor& scores, const at::Tensor& log_sum) {
    // Where nothing is seen there is no difference of infinities.
    return (scores - log_sum.clamp_min(std::numeric_limits<float>::lowest()).unsqueeze(-1)).exp_();
  }

 private:
  const Heads& heads_;
  const AttentionRule& rule_;
  const Visible& visible_;
  at::ScalarType sum_;
  int64_t times_, most_;
};

}  // namespace

AttentionPart attend_to_part(const Heads& heads, const AttentionRule& rule, const Visible& visible) {
  if (is_fused(heads, rule, visible)) {
    const auto [out, log_sum] =
        fused_part(heads.query, repeated_heads(heads.key, heads.query),
                   repeated_heads(heads.value, heads.query), visible.causal, rule.scale);
    return {out, log_sum};
  }
  const Rows rows(heads, rule, visible);
  const int64_t all = heads.query.size(2);
  AttentionPart part{at::empty_like(heads.query, heads.query.options(), at::MemoryFormat::Contiguous),
                     at::empty({heads.query.size(0), heads.query.size(1), all},
                               heads.query.options().dtype(sum_type(heads.query.scalar_type())))};
  for (int64_t first = 0; first < all; first += rows.most()) {
    const int64_t count = std::min(rows.most(), all - first);
    const at::Tensor scores = rows.scores(first, count);
    const at::Tensor log_sum = scores.logsumexp(-1);
    const at::Tensor shares = Rows::probabilities(scores, log_sum).to(heads.value.scalar_type());
    part.log_sum.narrow(2, first, count).copy_(log_sum);
    part.out.narrow(2, first, count)
        .copy_(rows.by_head(at::matmul(rows.in_groups(shares, 0, count), heads.value), count));
  }
  return part;
}

Heads part_gradients(const Heads& heads, const AttentionRule& rule, const Visible& visible,
                     const at::Tensor& gradient, const AttentionPart& all) {
  if (is_fused(heads, rule, visible)) {
    const auto [query, key, value] =
        fused_part_backward(gradient, heads.query, repeated_heads(heads.key, heads.query),
                            repeated_heads(heads.value, heads.query), all.out, all.log_sum.contiguous(),
                            visible.causal, rule.scale);
    return {query, summed_heads(key, heads.key.size(1)), summed_heads(value, heads.value.size(1))};
  }
  const Rows rows(heads, rule, visible);
  const at::ScalarType type = heads.query.scalar_type(), sum = sum_type(type);
  Heads result{at::empty_like(heads.query, heads.query.options(), at::MemoryFormat::Contiguous),
               at::zeros_like(heads.key, heads.key.options().dtype(sum)),
               at::zeros_like(heads.value, heads.value.options().dtype(sum))};
  for (int64_t first = 0; first < heads.query.size(2); first += rows.most()) {
    const int64_t count = std::min(rows.most(), heads.query.size(2) - first);
    at::Tensor tanh;
    const at::Tensor scores = rows.scores(first, count, &tanh);
    const at::Tensor shares = Rows::probabilities(scores, all.log_sum.narrow(2, first, count));
    const at::Tensor g = rows.in_groups(gradient, first, count);
    result.value.add_(at::matmul(rows.in_groups(shares.to(type), 0, count).transpose(-1, -2), g));
    const at::Tensor mean =
        (gradient.narrow(2, first, count) * all.out.narrow(2, first, count)).to(sum).sum(-1, true);
    at::Tensor slope = rows.by_head(at::matmul(g, heads.value.transpose(-1, -2)).to(sum), count);
    slope = (slope - mean).mul_(shares).mul_(rule.scale);
    if (tanh.defined()) slope.mul_(1 - tanh.square());
    const at::Tensor of_scores = rows.in_groups(slope.to(type), 0, count);
    result.query.narrow(2, first, count).copy_(rows.by_head(at::matmul(of_scores, heads.key), count));
    result.key.add_(at::matmul(of_scores.transpose(-1, -2), rows.in_groups(heads.query, first, count)));
  }
  return {result.query, result.key.to(type), result.value.to(type)};
}

void add_part(AttentionPart& sum, const AttentionPart& part) {
  const at::Tensor log_sum = at::logaddexp(sum.log_sum, part.log_sum);
  sum.out.mul_((sum.log_sum - log_sum).exp_().unsqueeze(-1))
      .add_(part.out * (part.log_sum - log_sum).exp_().unsqueeze(-1));
  sum.log_sum.copy_(log_sum);
}

}  // namespace sailor
