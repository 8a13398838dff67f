#include <cmath>

#include "tests/equality/reference/families.h"

namespace sailor::equality {

at::Tensor gpt2_reference(const ModelSpec& model, const Weights& w, const at::Tensor& ids,
                          const ReferenceDropout& drop) {
  const double epsilon = model.norm_epsilon;
  at::Tensor x = drop(
      at::embedding(w.at("0.token.weight"), ids) + w.at("0.position.weight").narrow(0, 0, ids.size(1)), 0, 0);
  for (int layer = 1; layer <= model.layers; ++layer) {
    const std::string at = std::to_string(layer) + ".";
    x = x +
        drop(reference_fused_attention(reference_layer_norm(x, w, at + "norm1", epsilon), w, at, model.heads,
                                       1 / std::sqrt(static_cast<double>(model.hidden / model.heads))),
             layer, 0);
    const at::Tensor normed = reference_layer_norm(x, w, at + "norm2", epsilon);
    const at::Tensor inner =
        reference_gelu(at::matmul(normed, w.at(at + "fc1.weight").t()) + w.at(at + "fc1.bias"));
    x = x + drop(at::matmul(inner, w.at(at + "fc2.weight")) + w.at(at + "fc2.bias"), layer, 1);
  }
  return reference_logits(model, w,
                          reference_layer_norm(x, w, std::to_string(model.layers + 1) + ".norm", epsilon));
}

}  // namespace sailor::equality
