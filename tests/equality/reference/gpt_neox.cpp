#include <cmath>

#include "tests/equality/reference/families.h"

namespace sailor::equality {
namespace {

at::Tensor exact_gelu(const at::Tensor& x) {
  return 0.5 * x * (1 + (x / std::sqrt(2.0)).erf());
}

// Attention with rotary positions on the first elements of every head; rows of the fused matrix are
// [head][query, key, value][size].
at::Tensor attention(const ModelSpec& model, const at::Tensor& x, const Weights& w, const std::string& at) {
  const int64_t batch = x.size(0), tokens = x.size(1), hidden = model.hidden;
  const int64_t size = hidden / model.heads;
  const auto rotated = static_cast<int64_t>(static_cast<double>(size) * model.rotary_fraction);
  const at::Tensor matrix = w.at(at + "qkv.weight").view({model.heads, 3, size, hidden});
  const at::Tensor bias = w.at(at + "qkv.bias").view({model.heads, 3, size});
  std::vector<at::Tensor> mixed;
  for (int64_t head = 0; head < model.heads; ++head) {
    const auto project = [&](int64_t which) {
      return at::matmul(x, matrix[head][which].t()) + bias[head][which];
    };
    const auto turned = [&](const at::Tensor& y) {
      return at::cat({reference_rotation(y.narrow(-1, 0, rotated), model.rotary_base),
                      y.narrow(-1, rotated, size - rotated)},
                     -1);
    };
    mixed.push_back(reference_attention(turned(project(0)), turned(project(1)), project(2),
                                        1 / std::sqrt(static_cast<double>(size))));
  }
  const at::Tensor heads = at::cat(mixed, -1).view({batch, tokens, hidden});
  return at::matmul(heads, w.at(at + "proj.weight")) + w.at(at + "proj.bias");
}

}  // namespace

at::Tensor gpt_neox_reference(const ModelSpec& model, const Weights& w, const at::Tensor& ids,
                              const ReferenceDropout& drop) {
  const double epsilon = model.norm_epsilon;
  at::Tensor x = drop(at::embedding(w.at("0.token.weight"), ids), 0, 0);
  for (int layer = 1; layer <= model.layers; ++layer) {
    const std::string at = std::to_string(layer) + ".";
    const at::Tensor mixed =
        drop(attention(model, reference_layer_norm(x, w, at + "norm1", epsilon), w, at), layer, 0);
    const at::Tensor read = model.parallel_residual ? x : x + mixed;
    const at::Tensor normed = reference_layer_norm(read, w, at + "norm2", epsilon);
    const at::Tensor inner =
        exact_gelu(at::matmul(normed, w.at(at + "fc1.weight").t()) + w.at(at + "fc1.bias"));
    const at::Tensor added =
        drop(at::matmul(inner, w.at(at + "fc2.weight")) + w.at(at + "fc2.bias"), layer, 1);
    x = x + mixed + added;
  }
  return reference_logits(model, w,
                          reference_layer_norm(x, w, std::to_string(model.layers + 1) + ".norm", epsilon));
}

}  // namespace sailor::equality
