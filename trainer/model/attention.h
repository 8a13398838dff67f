// Attention over the heads of a rank: building blocks for the families' attentions.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>

#include "trainer/model/layer.h"

namespace sailor {

// [batch, heads, tokens, head size]; keys and values may have fewer heads than queries.
struct Heads {
  at::Tensor query, key, value;
};

// `qkv` is [batch, tokens, rows] with rows ordered [key and value head][its query heads, key, value][head
// size]; without grouped queries that is [head][query, key, value].
Heads split_heads(const at::Tensor& qkv, int64_t heads, int64_t kv_heads);
// Back to [batch, tokens, heads * head size].
at::Tensor merge_heads(const at::Tensor& mixed);

// Every token attends to itself and at most `window` tokens before it (0 = all). Scores are multiplied by
// `scale`. Query head h uses key and value head h / (heads / kv_heads).
at::Tensor attend(const Heads& heads, double scale, int64_t window = 0);

// Rotary embeddings (Su et al., 2021) in the layout of Llama's weights: of a head's first `rotated` elements,
// element i of the first half and element i of the second half are a pair, rotated by the token's index times
// base^(-2 i / rotated). The other elements do not change. Tables are [tokens, rotated / 2].
struct RotaryTable {
  at::Tensor cosine, sine;

  RotaryTable() = default;
  RotaryTable(int64_t tokens, int64_t rotated, double base, const at::TensorOptions& options);
  // The table of a model, one for all blocks of a rank.
  RotaryTable(const LayerContext& context, int64_t rotated);
  // `x` is [batch, heads, tokens, head size], with at most as many tokens as the table.
  at::Tensor rotate(const at::Tensor& x) const;
};

}  // namespace sailor
