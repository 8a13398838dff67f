// Queries, keys and values of attention: from the result of their product to heads, turned by rotary angles,
// in one pass each way (trainer/kernels/heads.h). Differentiable.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>

#include "trainer/model/rotary.h"

namespace sailor {

// [batch, heads, tokens, head size]; keys and values may have fewer heads than queries.
struct Heads {
  at::Tensor query, key, value;
};

// `qkv` is [batch, tokens, rows] with rows ordered [key and value head][its query heads, key, value][head
// size]; without grouped queries that is [head][query, key, value]. Queries and keys are turned by the table,
// if it is there, as tokens from index `first` on.
Heads split_heads(const at::Tensor& qkv, int64_t heads, int64_t kv_heads, const RotaryTable& table = {},
                  int64_t first = 0);

// `x` is [batch, heads, tokens, head size].
at::Tensor turned_heads(const at::Tensor& x, const RotaryTable& table, int64_t first);

}  // namespace sailor
