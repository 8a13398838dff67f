#include <cmath>

#include "tests/equality/reference/families.h"

namespace sailor::equality {
namespace {

at::Tensor reference_rms_norm(const at::Tensor& x, const at::Tensor& weight, double epsilon) {
  return x / (x.pow(2).mean(-1, true) + epsilon).sqrt() * weight;
}

}  // namespace

at::Tensor llama_reference(const ModelSpec& model, const Weights& w, const at::Tensor& ids,
                           const ReferenceDropout& drop) {
  const int64_t batch = ids.size(0), tokens = ids.size(1), hidden = model.hidden;
  const int64_t size = hidden / model.heads, kv_heads = model.key_value_heads();
  const int64_t queries = model.heads / kv_heads;  // of each key and value head
  at::Tensor x = drop(at::embedding(w.at("0.token.weight"), ids), 0, 0);
  for (int layer = 1; layer <= model.layers; ++layer) {
    const std::string at = std::to_string(layer) + ".";
    const at::Tensor normed = reference_rms_norm(x, w.at(at + "norm1.weight"), model.norm_epsilon);
    const at::Tensor matrix = w.at(at + "qkv.weight").view({kv_heads, queries + 2, size, hidden});
    std::vector<at::Tensor> mixed;  // by query head
    for (int64_t group = 0; group < kv_heads; ++group) {
      const auto project = [&](int64_t which) { return at::matmul(normed, matrix[group][which].t()); };
      const at::Tensor key = reference_rotation(project(queries), model.rotary_base);
      for (int64_t q = 0; q < queries; ++q) {
        mixed.push_back(reference_attention(reference_rotation(project(q), model.rotary_base), key,
                                            project(queries + 1), 1 / std::sqrt(static_cast<double>(size))));
      }
    }
    x = x + drop(at::matmul(at::cat(mixed, -1), w.at(at + "proj.weight")), layer, 0);
    const at::Tensor inner = reference_rms_norm(x, w.at(at + "norm2.weight"), model.norm_epsilon);
    const at::Tensor both = w.at(at + "gate_up.weight").view({model.feed_forward, 2, hidden});
    const at::Tensor gate = at::matmul(inner, both.select(1, 0).t());
    const at::Tensor up = at::matmul(inner, both.select(1, 1).t());
    x = x + drop(at::matmul(gate * gate.sigmoid() * up, w.at(at + "down.weight")), layer, 1);
  }
  x = reference_rms_norm(x, w.at(std::to_string(model.layers + 1) + ".norm.weight"), model.norm_epsilon);
  return reference_logits(model, w, x.view({batch, tokens, hidden}));
}

}  // namespace sailor::equality
