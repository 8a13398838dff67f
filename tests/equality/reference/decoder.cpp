// Any decoder, by the choices of its ModelSpec: one head after the other, and formulas as papers and the
// transformers package write them.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "tests/equality/reference/families.h"

namespace sailor::equality {
namespace {

class Decoder {
 public:
  Decoder(const ModelSpec& model, const Weights& weights, const ReferenceDropout& drop)
      : m_(model),
        w_(weights),
        drop_(drop),
        size_(model.head_size > 0 ? model.head_size : model.hidden / model.heads) {}

  at::Tensor logits(const at::Tensor& ids) const {
    const double scale = m_.embedding_scale == 0 ? std::sqrt(m_.hidden) : m_.embedding_scale;
    at::Tensor x = at::embedding(w_.at("0.token.weight"), ids) * scale;
    if (m_.position_embedding == PositionEmbedding::learned)
      x = x + w_.at("0.position.weight").narrow(0, m_.unused_positions, ids.size(1));
    x = drop_(x, 0, 0);
    for (int layer = 1; layer <= m_.layers; ++layer) x = block(x, layer);
    const at::Tensor all =
        reference_logits(m_, w_, norm(x, std::to_string(m_.layers + 1) + ".norm")) * m_.logit_scale;
    return m_.logit_soft_cap > 0 ? m_.logit_soft_cap * (all / m_.logit_soft_cap).tanh() : all;
  }

 private:
  at::Tensor block(const at::Tensor& x, int layer) const {
    const std::string at = std::to_string(layer) + ".";
    const bool before = m_.norm_place != NormPlace::after, after = m_.norm_place != NormPlace::before;
    const at::Tensor first = before ? norm(x, at + "norm1") : x;
    at::Tensor mixed = attention(first, at, layer);
    if (after) mixed = norm(mixed, at + "norm1_after");
    const at::Tensor attended = x + m_.residual_scale * drop_(mixed, layer, 0);
    at::Tensor read = m_.parallel_residual ? x : attended;
    if (before) read = m_.shared_norm ? first : norm(read, at + "norm2");
    at::Tensor inner = mlp(read, at);
    if (after) inner = norm(inner, at + "norm2_after");
    return attended + m_.residual_scale * drop_(inner, layer, 1);
  }

  at::Tensor rms(const at::Tensor& x, const at::Tensor& weight) const {
    const at::Tensor factor = m_.norm == Norm::zero_centred_rms ? 1 + weight : weight;
    return x / (x.pow(2).mean(-1, true) + m_.norm_epsilon).sqrt() * factor;
  }
  at::Tensor norm(const at::Tensor& x, const std::string& name) const {
    if (m_.norm == Norm::layer) return reference_layer_norm(x, w_, name, m_.norm_epsilon);
    return rms(x, w_.at(name + ".weight"));
  }
  at::Tensor plus_bias(const at::Tensor& x, bool has, const std::string& name) const {
    return has ? x + w_.at(name + ".bias") : x;
  }

  // Queries, then keys, then values of all heads: [batch, tokens, heads, size] each.
  std::vector<at::Tensor> project(const at::Tensor& x, const std::string& at) const {
    const int64_t groups = m_.key_value_heads(), queries = m_.heads / groups;
    const at::Tensor matrix = w_.at(at + "qkv.weight").view({groups, queries + 2, size_, m_.hidden});
    std::vector<at::Tensor> heads[3];
    for (int64_t g = 0; g < groups; ++g) {
      for (int64_t i = 0; i < queries + 2; ++i) {
        at::Tensor y = at::matmul(x, matrix[g][i].t());
        if (m_.qkv_bias) y = y + w_.at(at + "qkv.bias").view({groups, queries + 2, size_})[g][i];
        heads[i < queries ? 0 : i - queries + 1].push_back(y);
      }
    }
    return {at::stack(heads[0], 2), at::stack(heads[1], 2), at::stack(heads[2], 2)};
  }

  at::Tensor head_norm(const at::Tensor& heads, const std::string& name) const {
    if (m_.qk_norm == QkNorm::none) return heads;
    const at::Tensor& weight = w_.at(name + ".weight");
    if (m_.qk_norm == QkNorm::heads) return rms(heads, weight);
    return rms(heads.flatten(2), weight).view(heads.sizes());
  }

  at::Tensor attention(const at::Tensor& x, const std::string& at, int layer) const {
    const std::vector<at::Tensor> qkv = project(x, at);
    const at::Tensor queries = head_norm(qkv[0], at + "query_norm"),
                     keys = head_norm(qkv[1], at + "key_norm");
    const bool local =
        m_.attention_window > 0 &&
        m_.window_pattern[static_cast<std::size_t>(layer - 1) % m_.window_pattern.size()] == 'L';
    const int64_t of_each = m_.heads / m_.key_value_heads();
    std::vector<at::Tensor> mixed;
    for (int64_t h = 0; h < m_.heads; ++h) {
      const at::Tensor q = turned(queries.select(2, h), local),
                       k = turned(keys.select(2, h / of_each), local);
      mixed.push_back(mix(q, k, qkv[2].select(2, h / of_each), local ? m_.attention_window : 0));
    }
    return plus_bias(at::matmul(at::cat(mixed, -1), w_.at(at + "proj.weight")), m_.proj_bias, at + "proj");
  }

  at::Tensor mix(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, int64_t window) const {
    const double scale =
        m_.attention_scale > 0 ? m_.attention_scale : 1 / std::sqrt(static_cast<double>(size_));
    if (m_.attention_soft_cap == 0) return reference_attention(q, k, v, scale, window);
    const at::Tensor row = at::arange(q.size(-2)).unsqueeze(1), column = at::arange(q.size(-2)).unsqueeze(0);
    at::Tensor unseen = column > row;
    if (window > 0) unseen = unseen.logical_or(column <= row - window);
    const at::Tensor scores = at::matmul(q, k.transpose(-1, -2)) * scale;
    const at::Tensor capped = m_.attention_soft_cap * (scores / m_.attention_soft_cap).tanh();
    return at::matmul(capped.masked_fill(unseen, -INFINITY).softmax(-1), v);
  }

  at::Tensor turned(const at::Tensor& x, bool local) const {
    if (m_.position_embedding == PositionEmbedding::learned) return x;
    if (!m_.rotary_interleaved) return turned_by_halves(x, local);
    const auto rotated = static_cast<int64_t>(static_cast<double>(size_) * m_.rotary_fraction);
    std::vector<int64_t> order;
    for (int64_t i = 0; i < rotated; ++i) order.push_back(i < rotated / 2 ? 2 * i : 2 * i + 1 - rotated);
    for (int64_t i = rotated; i < size_; ++i) order.push_back(i);
    const at::Tensor places = at::tensor(order, at::kLong);
    return turned_by_halves(x.index_select(-1, places), local).index_select(-1, places.argsort());
  }

  at::Tensor turned_by_halves(const at::Tensor& x, bool local) const {
    const auto rotated = static_cast<int64_t>(static_cast<double>(size_) * m_.rotary_fraction);
    const at::Tensor part = x.narrow(-1, 0, rotated), rest = x.narrow(-1, rotated, size_ - rotated);
    if (local && m_.local_rotary_base > 0)
      return at::cat({reference_rotation(part, m_.local_rotary_base), rest}, -1);
    return at::cat({scaled_rotation(part), rest}, -1);
  }

  at::Tensor scaled_rotation(const at::Tensor& x) const {
    const double d = static_cast<double>(x.size(-1)), factor = m_.rotary_factor;
    const double positions = m_.positions > 0 ? m_.positions : m_.sequence;
    const double original = m_.rotary_original_positions > 0 ? m_.rotary_original_positions : positions;
    const bool yarn = m_.rotary_scaling == RotaryScaling::yarn;
    double base = m_.rotary_base;
    if (m_.rotary_scaling == RotaryScaling::dynamic)
      base *=
          std::pow(factor * std::max<double>(original, m_.sequence) / original - (factor - 1), d / (d - 2));
    std::vector<double> speeds;
    for (int i = 0; i < x.size(-1) / 2; ++i)
      speeds.push_back(scaled_speed(std::pow(base, -2.0 * i / d), i, d, original));
    double magnitude = yarn ? 0.1 * std::log(factor) + 1 : 1;
    if (yarn && m_.rotary_attention_factor > 0) magnitude = m_.rotary_attention_factor;
    return reference_rotation(x, speeds, magnitude);
  }

  double scaled_speed(double speed, int pair, double d, double original) const {
    const double factor = m_.rotary_factor;
    if (m_.rotary_scaling == RotaryScaling::linear) return speed / factor;
    if (m_.rotary_scaling == RotaryScaling::llama3) {
      const double wavelength = 2 * std::numbers::pi / speed;
      if (wavelength < original / m_.rotary_high_frequency) return speed;
      if (wavelength > original / m_.rotary_low_frequency) return speed / factor;
      const double smooth = (original / wavelength - m_.rotary_low_frequency) /
                            (m_.rotary_high_frequency - m_.rotary_low_frequency);
      return (1 - smooth) * speed / factor + smooth * speed;
    }
    if (m_.rotary_scaling == RotaryScaling::yarn) {
      const auto at_rotations = [&](double rotations) {
        return d * std::log(original / (rotations * 2 * std::numbers::pi)) / (2 * std::log(m_.rotary_base));
      };
      double low = at_rotations(m_.rotary_fast_rotations), high = at_rotations(m_.rotary_slow_rotations);
      if (m_.rotary_whole_limits) low = std::floor(low), high = std::ceil(high);
      low = std::max(low, 0.0);
      high = std::min(high, d - 1);
      if (low == high) high += 0.001;
      const double ramp = std::clamp((pair - low) / (high - low), 0.0, 1.0);
      return speed / factor * ramp + speed * (1 - ramp);
    }
    return speed;
  }

  at::Tensor activated(const at::Tensor& x) const {
    switch (m_.activation) {
      case Activation::gelu:
        return 0.5 * x * (1 + (x / std::sqrt(2.0)).erf());
      case Activation::gelu_tanh:
        return reference_gelu(x);
      case Activation::silu:
        return x * x.sigmoid();
      case Activation::relu:
        break;
    }
    return at::relu(x);
  }

  at::Tensor mlp(const at::Tensor& x, const std::string& at) const {
    const std::string up = at + (m_.gated_mlp ? "gate_up" : "fc1"),
                      down = at + (m_.gated_mlp ? "down" : "fc2");
    const at::Tensor inner = plus_bias(at::matmul(x, w_.at(up + ".weight").t()), m_.mlp_bias, up);
    at::Tensor read;
    if (m_.gated_mlp) {
      const at::Tensor pairs = inner.unflatten(-1, {m_.feed_forward, 2});
      read = activated(pairs.select(-1, 0)) * pairs.select(-1, 1);
    } else {
      read = activated(inner);
    }
    return plus_bias(at::matmul(read, w_.at(down + ".weight")), m_.mlp_bias, down);
  }

  const ModelSpec& m_;
  const Weights& w_;
  const ReferenceDropout& drop_;
  int64_t size_;
};

}  // namespace

at::Tensor decoder_reference(const ModelSpec& model, const Weights& weights, const at::Tensor& ids,
                             const ReferenceDropout& drop) {
  return Decoder(model, weights, drop).logits(ids);
}

}  // namespace sailor::equality
