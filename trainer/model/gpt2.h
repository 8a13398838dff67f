// The GPT-2-style decoder: learned positions, pre-norm blocks, GELU (tanh) MLP, final norm, untied head.
//
// Parameters (D hidden, F feed_forward, H heads, V padded vocabulary; * = sharded along dimension 0):
//   0.token.weight* [V, D]   0.position.weight [sequence, D]
//   i.norm1.{weight,bias} [D]   i.qkv.weight* [3D, D]  i.qkv.bias* [3D]  rows ordered [head][q, k,
//   v][dimension] i.proj.weight* [D, D]  i.proj.bias [D]                              stored [in, out]:
//   transposed i.norm2.{weight,bias} [D]   i.fc1.weight* [F, D]  i.fc1.bias* [F]   i.fc2.weight* [F, D] ([in,
//   out])  i.fc2.bias [D] (layers + 1).norm.{weight,bias} [D]   (layers + 1).head.weight* [V, D]
// Rows of padding in V are zero, never trained, and their logits never counted.
#pragma once

#include <memory>

#include "trainer/model/layer.h"

namespace sailor {

void check_gpt2(const ModelSpec& model, int tp);
std::unique_ptr<Layer> build_gpt2_layer(const LayerContext& context, int index);

}  // namespace sailor
