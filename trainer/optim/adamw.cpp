#include "trainer/optim/adamw.h"

#include <cmath>

#include "trainer/optim/adamw_kernel.h"

namespace sailor {

AdamW::AdamW(const OptimizerSpec& spec, const std::vector<Parameter*>& parameters) : spec_(spec) {
  for (Parameter* parameter : parameters) {
    states_.push_back(
        {parameter, at::zeros_like(parameter->value.detach()), at::zeros_like(parameter->value.detach())});
  }
}

void AdamW::step() {
  ++steps_done_;
  const auto t = static_cast<double>(steps_done_);
  for (State& state : states_) {
    AdamWCoefficients c{};
    c.beta1 = spec_.beta1;
    c.beta2 = spec_.beta2;
    c.epsilon = spec_.epsilon;
    c.keep = 1 - spec_.lr * (state.parameter->decay ? spec_.weight_decay : 0.0);
    c.step_size = spec_.lr / (1 - std::pow(spec_.beta1, t));
    c.second_correction = 1 / (1 - std::pow(spec_.beta2, t));
    at::Tensor value = state.parameter->value.detach();  // shares memory with the parameter
    const at::Tensor gradient = state.parameter->value.grad();
    TORCH_CHECK(gradient.defined() && gradient.is_contiguous() && value.is_contiguous(),
                state.parameter->name, ": no gradient to update from");
    if (value.scalar_type() == at::kDouble) {
      adamw_update(value.data_ptr<double>(), gradient.data_ptr<double>(), state.m.data_ptr<double>(),
                   state.v.data_ptr<double>(), value.numel(), c);
    } else {
      adamw_update(value.data_ptr<float>(), gradient.data_ptr<float>(), state.m.data_ptr<float>(),
                   state.v.data_ptr<float>(), value.numel(), c);
    }
  }
}

}  // namespace sailor
