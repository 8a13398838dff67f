// The parameters of one layer of a decoder, in the order in which the trainer builds them.
//
// D hidden, F feed_forward, H heads and K key and value heads of size S, V padded vocabulary; * = sharded
// along dimension 0. Layer i has, where the model's choices ask for them:
//   0.token.weight* [V, D]          0.position.weight [unused + positions, D]
//   i.norm1.{weight,bias} [D]       before attention
//   i.qkv.weight* [(H + 2 K) S, D], i.qkv.bias*: rows [kv head][its queries, key, value][S]
//   i.query_norm.weight, i.key_norm.weight [S], or [H S]* and [K S]*
//   i.proj.weight* [H S, D], stored [in, out]; i.proj.bias [D]
//   i.norm1_after.{weight,bias} [D]
//   i.norm2.{weight,bias} [D]       before the MLP
//   i.fc1.weight* [F, D], i.fc1.bias* [F]; i.fc2.weight* [F, D], stored [in, out]; i.fc2.bias [D]; or, gated,
//   i.gate_up.weight* [2F, D], i.gate_up.bias*: rows gate 0, up 0, gate 1, ...; i.down.weight*, i.down.bias
//   i.norm2_after.{weight,bias} [D]
//   (layers + 1).norm.{weight,bias} [D]      (layers + 1).head.weight* [V, D], or the embedding's when tied
// Matrices are [rows, hidden]: a column-parallel linear layer is stored as [outputs, inputs], a row-parallel
// one as [inputs, outputs], so that both are sharded into blocks of rows. Rows of padding in V are zero,
// never trained, and their logits never counted.
#pragma once

#include <vector>

#include "planner/spec/model_parameter.h"
#include "planner/spec/model_spec.h"
#include "planner/spec/tensor_names.h"

namespace sailor {

// `names` says where model directories store them. Rows of vocabulary matrices beyond the vocabulary are
// padding.
std::vector<ParameterSpec> decoder_parameters(const ModelSpec& model, const TensorNames& names, int layer,
                                              int64_t padded_vocabulary);

}  // namespace sailor
