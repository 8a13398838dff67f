#include "trainer/optim/operator_kernels.h"

#include <torch/version.h>

#include <optional>

namespace sailor {
namespace {

// In place: a copy would need as much memory as all gradients.
at::Tensor scaled(const at::Tensor& gradient, double scale) {
  return scale == 1 ? gradient : at::Tensor(gradient).mul_(scale);
}

void round_values(const std::vector<UpdatedTensors>& runs) {
  for (const UpdatedTensors& run : runs) {
    if (run.rounded.defined()) at::Tensor(run.rounded).copy_(run.value);
  }
}

#if TORCH_VERSION_MAJOR >= 2
// libtorch's kernel corrects m and v by the number of steps, and has the rate before that.
void adamw_all(const std::vector<UpdatedTensors>& runs, const AdamWCoefficients& c) {
  std::vector<at::Tensor> values, gradients, m, v, no_maxima, steps;
  const at::TensorOptions scalar = runs.front().value.options().dtype(at::kFloat);
  const at::Tensor step = at::full({}, static_cast<double>(c.step), scalar);
  std::optional<at::Tensor> divisor;
  if (c.gradient_scale != 1) divisor = at::full({}, 1 / c.gradient_scale, scalar);
  for (const UpdatedTensors& run : runs) {
    values.push_back(run.value);
    gradients.push_back(run.gradient);
    m.push_back(run.states[0]);
    v.push_back(run.states[1]);
    steps.push_back(step);
  }
  at::_fused_adamw_(values, gradients, m, v, no_maxima, steps, c.learning_rate, c.beta1, c.beta2,
                    c.weight_decay, c.epsilon, /*amsgrad=*/false, /*maximize=*/false, divisor);
}
#else
void adamw_one(const UpdatedTensors& run, const AdamWCoefficients& c) {
  const at::Tensor gradient = scaled(run.gradient, c.gradient_scale);
  at::Tensor value = run.value, m = run.states[0], v = run.states[1];
  m.mul_(c.beta1).add_(gradient, 1 - c.beta1);
  v.mul_(c.beta2).addcmul_(gradient, gradient, 1 - c.beta2);
  value.mul_(c.keep).addcdiv_(m, (v * c.second_correction).sqrt_().add_(c.epsilon), -c.step_size);
}

void adamw_all(const std::vector<UpdatedTensors>& runs, const AdamWCoefficients& c) {
  for (const UpdatedTensors& run : runs) adamw_one(run, c);
}
#endif

}  // namespace

void adamw_by_operators(const std::vector<UpdatedTensors>& runs, const AdamWCoefficients& c) {
  const at::NoGradGuard no_graph;
  if (!runs.empty()) adamw_all(runs, c);
  round_values(runs);
}

void sgd_by_operators(const std::vector<UpdatedTensors>& runs, const SgdCoefficients& c) {
  const at::NoGradGuard no_graph;
  for (const UpdatedTensors& run : runs) {
    at::Tensor value = run.value;
    at::Tensor step = scaled(run.gradient, c.gradient_scale).add(value, c.weight_decay);
    if (!run.states.empty()) {
      at::Tensor momentum = run.states[0];
      momentum.mul_(c.momentum).add_(step);
      step = c.nesterov ? step.add(momentum, c.momentum) : momentum;
    }
    value.sub_(step, c.learning_rate);
  }
  round_values(runs);
}

}  // namespace sailor
