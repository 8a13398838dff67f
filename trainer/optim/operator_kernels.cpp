#include "trainer/optim/operator_kernels.h"

#include <ATen/core/grad_mode.h>

#include "trainer/kernels/adamw.h"
#include "trainer/model/kernel_arguments.h"

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

void adamw_by_kernel(const UpdatedTensors& run, const AdamWCoefficients& c, const kernels::Place& place) {
  kernels::AdamWUpdate update{.type = element_of(run.value),
                              .count = run.value.numel(),
                              .value = run.value.data_ptr(),
                              .gradient = run.gradient.data_ptr(),
                              .m = run.states[0].data_ptr(),
                              .v = run.states[1].data_ptr(),
                              .beta1 = c.beta1,
                              .beta2 = c.beta2,
                              .epsilon = c.epsilon,
                              .keep = c.keep,
                              .step_size = c.step_size,
                              .second_correction = c.second_correction,
                              .gradient_scale = c.gradient_scale};
  if (run.rounded.defined()) {
    update.rounded = run.rounded.data_ptr();
    update.rounded_type = element_of(run.rounded);
  }
  kernels::adamw(update, place);
}

void adamw_one(const UpdatedTensors& run, const AdamWCoefficients& c) {
  const at::Tensor& gradient = run.gradient;
  at::Tensor value = run.value, m = run.states[0], v = run.states[1];
  m.mul_(c.beta1).add_(gradient, 1 - c.beta1);
  v.mul_(c.beta2).addcmul_(gradient, gradient, 1 - c.beta2);
  value.mul_(c.keep).addcdiv_(m, (v * c.second_correction).sqrt_().add_(c.epsilon), -c.step_size);
}

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
  const kernels::Place place = place_of_kernels(runs.front().value);
  if (place.on_device) {
    for (const UpdatedTensors& run : runs) adamw_by_kernel(run, c, place);
    return;
  }
  with_scaled_gradients(runs, c.gradient_scale, [&] {
    for (const UpdatedTensors& run : runs) adamw_one(run, c);
  });
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
