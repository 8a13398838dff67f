// What the model directories of a family call the parameters of a decoder, and in which order they store
// their rows. Names are without `.weight` and `.bias`. Plain value types.
#pragma once

#include <string>
#include <vector>

namespace sailor {

// Queries, keys and values in files: three tensors; one with all queries, then all keys, then all values; or
// one ordered as ours, [key and value head][its query heads, key, value].
enum class QkvRows { separate, by_kind, by_head };

struct TensorNames {
  std::string tokens, positions;  // embeddings
  std::string final_norm, head = "lm_head";
  std::string block;  // before the index of a block, from 0: `model.layers.`
  // In a block; norms that a model does not have are empty.
  std::string norm1, norm1_after;  // of attention
  std::string norm2, norm2_after;  // of the MLP
  std::string query_norm, key_norm;
  QkvRows qkv_rows = QkvRows::separate;
  std::vector<std::string> qkv;  // three names, or one
  std::string proj;
  std::vector<std::string> up;  // gate and up, one with both, or without a gate up alone
  std::string down;
  bool inputs_first = false;  // matrices are stored as [inputs, outputs]
};

// Llama's names, which most families have.
TensorNames llama_names();

}  // namespace sailor
