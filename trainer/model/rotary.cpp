#include "trainer/model/rotary.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>

#include "trainer/model/context_parallel.h"
#include "trainer/model/heads.h"

namespace sailor {
namespace {

at::Tensor plain_speeds(int64_t rotated, double base) {
  const at::Tensor pair = at::arange(rotated / 2, at::kDouble);
  return (pair * (-2.0 * std::log(base) / static_cast<double>(rotated))).exp();
}

// The base grows with the sequence, so that the slowest pair turns as far as in the original length.
double dynamic_base(const ModelSpec& model) {
  const double original = model.original_positions(), dimension = model.rotated_elements();
  const double length = std::max(original, static_cast<double>(model.sequence));
  const double stretch = model.rotary_factor * length / original - (model.rotary_factor - 1);
  return model.rotary_base * std::pow(stretch, dimension / (dimension - 2));
}

// Slow pairs are divided by the factor, fast ones are not, and those between are blended.
at::Tensor llama3_speeds(const ModelSpec& model, const at::Tensor& plain) {
  const double low = model.rotary_low_frequency, high = model.rotary_high_frequency;
  const at::Tensor turns = model.original_positions() * plain / (2 * std::numbers::pi);
  const at::Tensor kept = ((turns - low) / (high - low)).clamp(0, 1);
  return plain * (kept + (1 - kept) / model.rotary_factor);
}

// The index of the pair that turns so often in the original length.
double pair_of_rotations(const ModelSpec& model, double rotations) {
  return model.rotated_elements() *
         std::log(model.original_positions() / (rotations * 2 * std::numbers::pi)) /
         (2 * std::log(model.rotary_base));
}

at::Tensor yarn_speeds(const ModelSpec& model, const at::Tensor& plain) {
  double low = pair_of_rotations(model, model.rotary_fast_rotations),
         high = pair_of_rotations(model, model.rotary_slow_rotations);
  if (model.rotary_whole_limits) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, model.rotated_elements() - 1.0);
  if (low == high) high += 0.001;
  const at::Tensor scaled = ((at::arange(plain.size(0), at::kDouble) - low) / (high - low)).clamp(0, 1);
  return plain * (1 - scaled + scaled / model.rotary_factor);
}

}  // namespace

RotarySpeeds rotary_speeds(const ModelSpec& model, bool local) {
  const int64_t rotated = model.rotated_elements();
  if (local && model.local_rotary_base > 0) return {plain_speeds(rotated, model.local_rotary_base)};
  const at::Tensor plain = plain_speeds(rotated, model.rotary_base);
  switch (model.rotary_scaling) {
    case RotaryScaling::none:
      break;
    case RotaryScaling::linear:
      return {plain / model.rotary_factor};
    case RotaryScaling::dynamic:
      return {plain_speeds(rotated, dynamic_base(model))};
    case RotaryScaling::llama3:
      return {llama3_speeds(model, plain)};
    case RotaryScaling::yarn:
      return {yarn_speeds(model, plain), model.rotary_attention_factor > 0
                                             ? model.rotary_attention_factor
                                             : 1 + 0.1 * std::log(model.rotary_factor)};
  }
  return {plain};
}

RotaryTable::RotaryTable(int64_t tokens, const RotarySpeeds& speeds, const at::TensorOptions& options) {
  const at::Tensor angle = at::arange(tokens, at::kDouble).unsqueeze(1) * speeds.speed;
  cosine = (angle.cos() * speeds.factor).to(options);
  sine = (angle.sin() * speeds.factor).to(options);
}

RotaryTable::RotaryTable(const LayerContext& context, bool local) {
  const std::string name = local ? "rotary.local." : "rotary.";
  const std::string cosine_name = name + "cosine", sine_name = name + "sine";
  if (context.shared && context.shared->contains(cosine_name)) {
    cosine = context.shared->at(cosine_name);
    sine = context.shared->at(sine_name);
    interleaved = context.model.rotary_interleaved;
    return;
  }
  *this = RotaryTable(context.model.sequence, rotary_speeds(context.model, local),
                      at::TensorOptions(context.device).dtype(context.dtype));
  interleaved = context.model.rotary_interleaved;
  if (const int ring = context.ring(); ring > 1) {
    const RingTokens own(context.model.sequence, ring, ring_rank({.context = context.cp, .ring = ring}));
    for (at::Tensor* table : {&cosine, &sine})
      *table = at::cat({table->narrow(0, own.front.first, own.front.count),
                        table->narrow(0, own.back.first, own.back.count)});
  }
  if (!context.shared) return;
  (*context.shared)[cosine_name] = cosine;
  (*context.shared)[sine_name] = sine;
}

at::Tensor RotaryTable::rotate(const at::Tensor& x, int64_t first) const {
  return is_there() ? turned_heads(x, *this, first) : x;
}

}  // namespace sailor
