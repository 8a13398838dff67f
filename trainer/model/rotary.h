// Rotary embeddings (Su et al., 2021) in the layout of Llama's weights, with the scalings of longer contexts
// as the transformers package computes them.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>

#include "planner/spec/model_spec.h"
#include "trainer/model/layer.h"

namespace sailor {

// The angle by which each pair of a head's elements turns per token (float64 [rotated / 2]), and the factor
// of cosine and sine. Blocks with a window may have a base of their own, without scaling.
struct RotarySpeeds {
  at::Tensor speed;
  double factor = 1;
};
RotarySpeeds rotary_speeds(const ModelSpec& model, bool local);

// Of a head's first `rotated` elements, element i of the first half and element i of the second half are a
// pair, or if they are interleaved elements 2 i and 2 i + 1, rotated by the token's index times speed i. The
// other elements do not change. Tables are [tokens, rotated / 2]; without elements, nothing is rotated.
struct RotaryTable {
  at::Tensor cosine, sine;
  bool interleaved = false;

  RotaryTable() = default;
  RotaryTable(int64_t tokens, const RotarySpeeds& speeds, const at::TensorOptions& options);
  // The table of a model's local or other blocks, one for all such blocks of a rank: of the tokens that it
  // has in attention (RingTokens).
  RotaryTable(const LayerContext& context, bool local);
  // `x` is [batch, heads, tokens, head size], of tokens from index `first` on, none beyond the table.
  at::Tensor rotate(const at::Tensor& x, int64_t first = 0) const;
  bool is_there() const { return cosine.defined(); }
};

}  // namespace sailor
