#include "trainer/optim/sgd.h"

namespace sailor {

Sgd::Sgd(const OptimizerSpec& spec, std::vector<OptimizerSlice> slices, Device* offloads)
    : Optimizer(spec, std::move(slices), offloads), spec_(spec) {}

void Sgd::begin(double learning_rate) {
  coefficients_.learning_rate = learning_rate;
  coefficients_.momentum = spec_.momentum;
  coefficients_.nesterov = spec_.nesterov;
}

SgdCoefficients Sgd::coefficients(const OptimizerSlice& slice, double gradient_scale) const {
  SgdCoefficients c = coefficients_;
  c.learning_rate *= slice.lr_scale;
  c.weight_decay = slice.own_weight_decay(spec_.weight_decay);
  c.gradient_scale = gradient_scale;
  return c;
}

void Sgd::update(std::size_t i, int64_t first, int64_t count, double gradient_scale) {
  const OptimizerSlice& slice = slices()[i];
  const std::vector<OptimizerState>& states = state(i);
  const SgdCoefficients c = coefficients(slice, gradient_scale);
  with_values(i, first, [&]<class T, class R>(T* value, R* rounded) {
    T* momentum = spec_.momentum > 0 ? states.front().tensor.data_ptr<T>() + first : nullptr;
    sgd_update(value, rounded, slice.gradient.data_ptr<T>() + first, momentum, count, c);
  });
}

void Sgd::update_on_device(const std::vector<std::size_t>& alike, double gradient_scale) {
  sgd_by_operators(whole(alike), coefficients(slices()[alike.front()], gradient_scale));
}

}  // namespace sailor
