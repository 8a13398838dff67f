#include "trainer/optim/sgd.h"

namespace sailor {

Sgd::Sgd(const OptimizerSpec& spec, std::vector<OptimizerSlice> slices)
    : Optimizer(std::move(slices),
                spec.momentum > 0 ? std::vector<std::string>{"momentum"} : std::vector<std::string>{}),
      spec_(spec) {}

void Sgd::begin(double learning_rate) {
  coefficients_.learning_rate = learning_rate;
  coefficients_.momentum = spec_.momentum;
  coefficients_.nesterov = spec_.nesterov;
}

void Sgd::update(std::size_t i, int64_t first, int64_t count, double gradient_scale) {
  const OptimizerSlice& slice = slices()[i];
  const std::vector<OptimizerState>& states = state(i);
  SgdCoefficients c = coefficients_;
  c.weight_decay = slice.decay ? spec_.weight_decay : 0;
  c.gradient_scale = gradient_scale;
  auto run = [&]<class T>(T* value, Bf16* rounded) {
    T* momentum = spec_.momentum > 0 ? states.front().tensor.data_ptr<T>() + first : nullptr;
    sgd_update(value + first, rounded, slice.gradient.data_ptr<T>() + first, momentum, count, c);
  };
  switch (slice.value.scalar_type()) {
    case at::kDouble:
      return run(slice.value.data_ptr<double>(), nullptr);
    case at::kBFloat16:
      return run(states.back().tensor.data_ptr<float>(),
                 reinterpret_cast<Bf16*>(slice.value.data_ptr<at::BFloat16>()) + first);
    default:
      return run(slice.value.data_ptr<float>(), nullptr);
  }
}

}  // namespace sailor
