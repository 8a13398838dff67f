#include "tests/equality/reference/families.h"

#include <cmath>

namespace sailor::equality {

ReferenceForward reference_forward(const std::string& family) {
  static const std::map<std::string, ReferenceForward> all = {{"gpt2", gpt2_reference},
                                                              {"opt", opt_reference},
                                                              {"gpt-neo", gpt_neo_reference},
                                                              {"gpt-neox", gpt_neox_reference}};
  const auto found = all.find(family);
  return found == all.end() ? decoder_reference : found->second;
}

at::Tensor reference_layer_norm(const at::Tensor& x, const Weights& weights, const std::string& at,
                                double epsilon) {
  const at::Tensor centred = x - x.mean(-1, true);
  return centred * (centred.pow(2).mean(-1, true) + epsilon).rsqrt() * weights.at(at + ".weight") +
         weights.at(at + ".bias");
}

at::Tensor reference_gelu(const at::Tensor& x) {
  return 0.5 * x * (1 + (std::sqrt(2 / M_PI) * (x + 0.044715 * x.pow(3))).tanh());
}

at::Tensor reference_rotation(const at::Tensor& x, double base) {
  const int64_t half = x.size(-1) / 2;
  std::vector<double> speeds;
  for (int64_t i = 0; i < half; ++i)
    speeds.push_back(1 / std::pow(base, static_cast<double>(i) / static_cast<double>(half)));
  return reference_rotation(x, speeds, 1);
}

at::Tensor reference_rotation(const at::Tensor& x, const std::vector<double>& speeds, double factor) {
  const int64_t tokens = x.size(-2), half = x.size(-1) / 2;
  std::vector<double> angles;
  for (int64_t t = 0; t < tokens; ++t) {
    for (int64_t i = 0; i < half; ++i)
      angles.push_back(static_cast<double>(t) * speeds[static_cast<std::size_t>(i)]);
  }
  const at::Tensor angle = at::tensor(angles, at::kDouble).view({tokens, half});
  const at::Tensor turn =
      (at::complex(angle.cos(), angle.sin()) * factor).to(at::toComplexType(x.scalar_type()));
  const at::Tensor pairs = at::complex(x.narrow(-1, 0, half), x.narrow(-1, half, half)) * turn;
  return at::cat({at::real(pairs), at::imag(pairs)}, -1);
}

at::Tensor reference_attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                               double scale, int64_t window) {
  const int64_t tokens = query.size(-2);
  const at::Tensor row = at::arange(tokens).unsqueeze(1), column = at::arange(tokens).unsqueeze(0);
  at::Tensor unseen = column > row;
  if (window > 0) unseen = unseen.logical_or(column <= row - window);
  const at::Tensor scores = at::matmul(query, key.transpose(-1, -2)) * scale;
  return at::matmul(scores.masked_fill(unseen, -INFINITY).softmax(-1), value);
}

at::Tensor reference_fused_attention(const at::Tensor& x, const Weights& weights, const std::string& at,
                                     int64_t heads, double scale, int64_t window) {
  const int64_t batch = x.size(0), tokens = x.size(1), hidden = x.size(2), size = hidden / heads;
  const at::Tensor matrix = weights.at(at + "qkv.weight").view({heads, 3, size, hidden});
  const auto bias = weights.find(at + "qkv.bias");
  const auto project = [&](int64_t which) {
    at::Tensor y = at::matmul(x, matrix.select(1, which).reshape({hidden, hidden}).t());
    if (bias != weights.end()) y = y + bias->second.view({heads, 3, size}).select(1, which).reshape({hidden});
    return y.view({batch, tokens, heads, size}).transpose(1, 2);
  };
  const at::Tensor mixed = reference_attention(project(0), project(1), project(2), scale, window)
                               .transpose(1, 2)
                               .reshape({batch, tokens, hidden});
  return at::matmul(mixed, weights.at(at + "proj.weight")) + weights.at(at + "proj.bias");
}

at::Tensor reference_logits(const ModelSpec& model, const Weights& weights, const at::Tensor& normed) {
  const std::string matrix =
      model.tied_embeddings ? "0.token.weight" : std::to_string(model.layers + 1) + ".head.weight";
  return at::matmul(normed, weights.at(matrix).t());
}

}  // namespace sailor::equality
