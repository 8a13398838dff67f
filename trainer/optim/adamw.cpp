#include "trainer/optim/adamw.h"

#include <cmath>

namespace sailor {
namespace {

enum State : std::size_t { kM, kV };

}  // namespace

AdamW::AdamW(const OptimizerSpec& spec, std::vector<OptimizerSlice> slices, Device* offloads)
    : Optimizer(spec, std::move(slices), offloads), spec_(spec) {}

void AdamW::begin(double learning_rate) {
  const auto t = static_cast<double>(steps_done());
  coefficients_.beta1 = spec_.beta1;
  coefficients_.beta2 = spec_.beta2;
  coefficients_.epsilon = spec_.epsilon;
  coefficients_.step_size = learning_rate / (1 - std::pow(spec_.beta1, t));
  coefficients_.second_correction = 1 / (1 - std::pow(spec_.beta2, t));
  coefficients_.learning_rate = learning_rate;
}

AdamWCoefficients AdamW::coefficients(const OptimizerSlice& slice, double gradient_scale) const {
  AdamWCoefficients c = coefficients_;
  c.step_size *= slice.lr_scale;
  c.learning_rate *= slice.lr_scale;
  c.weight_decay = slice.own_weight_decay(spec_.weight_decay);
  c.keep = 1 - c.learning_rate * c.weight_decay;
  c.gradient_scale = gradient_scale;
  return c;
}

void AdamW::update(std::size_t i, int64_t first, int64_t count, double gradient_scale) {
  const OptimizerSlice& slice = slices()[i];
  const std::vector<OptimizerState>& states = state(i);
  const AdamWCoefficients c = coefficients(slice, gradient_scale);
  with_values(i, first, [&]<class T, class R>(T* value, R* rounded) {
    adamw_update(value, rounded, slice.gradient.data_ptr<T>() + first,
                 states[kM].tensor.data_ptr<T>() + first, states[kV].tensor.data_ptr<T>() + first, count, c);
  });
}

void AdamW::update_on_device(const std::vector<std::size_t>& alike, double gradient_scale) {
  adamw_by_operators(whole(alike), coefficients(slices()[alike.front()], gradient_scale));
}

}  // namespace sailor
