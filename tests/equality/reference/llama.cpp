#include <cmath>

#include "tests/equality/reference/families.h"

namespace sailor::equality {
namespace {

at::Tensor reference_rms_norm(const at::Tensor& x, const at::Tensor& weight, double epsilon) {
  return x / (x.pow(2).mean(-1, true) + epsilon).sqrt() * weight;
}

// Pairs (i, i + half) of every head as complex numbers, times e^(i angle).
at::Tensor reference_rotation(const at::Tensor& x, double base) {
  const int64_t tokens = x.size(-2), half = x.size(-1) / 2;
  at::Tensor angle = at::empty({tokens, half}, at::kDouble);
  for (int64_t t = 0; t < tokens; ++t) {
    for (int64_t i = 0; i < half; ++i)
      angle[t][i] =
          static_cast<double>(t) / std::pow(base, static_cast<double>(i) / static_cast<double>(half));
  }
  const at::Tensor turn = at::complex(angle.cos(), angle.sin()).to(at::toComplexType(x.scalar_type()));
  const at::Tensor pairs = at::complex(x.narrow(-1, 0, half), x.narrow(-1, half, half)) * turn;
  return at::cat({at::real(pairs), at::imag(pairs)}, -1);
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
