// Attention over the heads of a rank: building blocks for the families' attentions.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <vector>

#include "trainer/model/heads.h"

namespace sailor {

// [batch, kv heads, tokens, size] to [batch, kv heads * times, tokens, size].
at::Tensor repeat_heads(const at::Tensor& x, int64_t times);

// Back to [batch, tokens, heads * head size].
at::Tensor merge_heads(const at::Tensor& mixed);

// Every token attends to itself and at most `window` tokens before it (0 = all). Scores are multiplied by
// `scale`, and with a soft cap c become c tanh(score / c). Query head h uses key and value head h / (heads /
// kv_heads).
at::Tensor attend(const Heads& heads, double scale, int64_t window = 0, double soft_cap = 0);

// The queries are those of the last tokens; keys and values may be of more tokens before them. Not for
// training: computed with all scores in memory.
at::Tensor attend_to_past(const Heads& heads, double scale, int64_t window = 0, double soft_cap = 0);

// The same within each of the documents that the sequences consist of (Batch::documents), with heads merged.
// Documents are computed one by one: none needs a mask, and the time is that of the documents alone.
// Rotary positions may be those in the sequence: scores depend on their differences only.
at::Tensor attend_in_documents(const Heads& heads, const std::vector<int64_t>& documents, double scale,
                               int64_t window, double soft_cap);

}  // namespace sailor
