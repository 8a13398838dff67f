// Attention of some queries to some keys, a part of all that they attend to, and how results of parts are
// put together (Liu et al. 2023, "Ring Attention"; Dao 2023, FlashAttention-2).
//
// A result has the logarithm of the sum of exponentials of its scores beside it, with which it is weighted
// against others. The gradients of a part follow from the result and the logarithm over all parts. Not
// differentiable; with the library's fused kernels where they return that logarithm, and else with the scores
// of some rows at a time in memory.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>

#include "trainer/model/heads.h"

namespace sailor {

// What the queries of a part see of its keys.
struct Visible {
  // Query i of n sees keys up to i; there are n keys.
  bool causal = false;
  // If it is defined: [queries, keys], true where a key is seen; not with `causal`. A query may see none.
  at::Tensor mask{};
};

struct AttentionRule {
  double scale = 1;     // of scores
  double soft_cap = 0;  // c > 0: scores become c tanh(score / c)
};

// Keys and values may have fewer heads than queries. `out` is [batch, heads, queries, size], in the type of
// the queries; `log_sum` is [batch, heads, queries], in fp32, or fp64 for such queries, -infinity where a
// query sees no key.
struct AttentionPart {
  at::Tensor out, log_sum;
};
AttentionPart attend_to_part(const Heads& heads, const AttentionRule& rule, const Visible& visible);

// Gradients in the types of the heads. `out` and `log_sum` are those of all parts, and `gradient` that of
// `out`.
Heads part_gradients(const Heads& heads, const AttentionRule& rule, const Visible& visible,
                     const at::Tensor& gradient, const AttentionPart& all);

// Adds a further part of the same queries to `sum`, whose `out` is in the type of its `log_sum`.
void add_part(AttentionPart& sum, const AttentionPart& part);

}  // namespace sailor
