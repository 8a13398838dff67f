#include "trainer/optim/operator_kernels.h"

#include <ATen/core/grad_mode.h>
#include <torch/version.h>

namespace sailor {
namespace {

// Calls update() with the gradients times `scale`, in place: a copy would need as much memory as all of them.
template <class Update>
void with_scaled_gradients(const std::vector<UpdatedTensors>& runs, double scale, const Update& update) {
  if (scale == 1 || runs.empty()) return update();
  std::vector<at::Tensor> gradients;
  for (const UpdatedTensors& run : runs) gradients.push_back(run.gradient);
  at::_foreach_mul_(gradients, scale);
  update();
  at::_foreach_mul_(gradients, 1 / scale);
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
  const at::Tensor step =
      at::full({}, static_cast<double>(c.step), runs.front().value.options().dtype(at::kFloat));
  for (const UpdatedTensors& run : runs) {
    values.push_back(run.value);
    gradients.push_back(run.gradient);
    m.push_back(run.states[0]);
    v.push_back(run.states[1]);
    steps.push_back(step);
  }
  at::_fused_adamw_(values, gradients, m, v, no_maxima, steps, c.learning_rate, c.beta1, c.beta2,
                    c.weight_decay, c.epsilon, /*amsgrad=*/false, /*maximize=*/false);
}
#else
void adamw_one(const UpdatedTensors& run, const AdamWCoefficients& c) {
  const at::Tensor& gradient = run.gradient;
  at::Tensor value = run.value, m = run.states[0], v = run.states[1];
  m.mul_(c.beta1).add_(gradient, 1 - c.beta1);
  v.mul_(c.beta2).addcmul_(gradient, gradient, 1 - c.beta2);
  value.mul_(c.keep).addcdiv_(m, (v * c.second_correction).sqrt_().add_(c.epsilon), -c.step_size);
}

void adamw_all(const std::vector<UpdatedTensors>& runs, const AdamWCoefficients& c) {
  for (const UpdatedTensors& run : runs) adamw_one(run, c);
}
#endif

void sgd_one(const UpdatedTensors& run, const SgdCoefficients& c) {
  at::Tensor value = run.value;
  at::Tensor step = run.gradient.add(value, c.weight_decay);
  if (!run.states.empty()) {
    at::Tensor momentum = run.states[0];
    momentum.mul_(c.momentum).add_(step);
    step = c.nesterov ? step.add(momentum, c.momentum) : momentum;
  }
  value.sub_(step, c.learning_rate);
}

}  // namespace

void adamw_by_operators(const std::vector<UpdatedTensors>& runs, const AdamWCoefficients& c) {
  const at::NoGradGuard no_graph;
  if (runs.empty()) return;
  with_scaled_gradients(runs, c.gradient_scale, [&] { adamw_all(runs, c); });
  round_values(runs);
}

void muon_directions_by_operators(const std::vector<UpdatedTensors>& runs,
                                  const std::vector<at::Tensor>& directions, const MuonCoefficients& c) {
  const at::NoGradGuard no_graph;
  const double rest = (1 - c.momentum) * c.gradient_scale;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    at::Tensor direction = directions[i];
    at::mul_out(direction, runs[i].states[0], at::scalar_tensor(c.momentum, direction.dtype()));
    direction.add_(runs[i].gradient, rest);
    if (c.nesterov) direction.mul_(c.momentum).add_(runs[i].gradient, rest);
  }
}

void muon_by_operators(const std::vector<UpdatedTensors>& runs, const std::vector<at::Tensor>& directions,
                       const MuonCoefficients& c) {
  const at::NoGradGuard no_graph;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    at::Tensor value = runs[i].value, momentum = runs[i].states[0];
    momentum.mul_(c.momentum).add_(runs[i].gradient, (1 - c.momentum) * c.gradient_scale);
    value.mul_(c.keep).sub_(directions[i], c.learning_rate);
  }
  round_values(runs);
}

void sgd_by_operators(const std::vector<UpdatedTensors>& runs, const SgdCoefficients& c) {
  const at::NoGradGuard no_graph;
  with_scaled_gradients(runs, c.gradient_scale, [&] {
    for (const UpdatedTensors& run : runs) sgd_one(run, c);
  });
  round_values(runs);
}

}  // namespace sailor
