#include "trainer/model/norms.h"

#include <torch/csrc/autograd/custom_function.h>

#include "trainer/model/element_types.h"

namespace sailor {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Variable;
using torch::autograd::variable_list;

// With r = 1 / sqrt(mean(x^2) + epsilon) and n elements: y = x r w. For u = g w, the gradient for x is r u -
// x r^3 sum(x u) / n, that for w the sum of g x r over all tokens. Keeps x and r, where a composition of
// elementwise operators would keep four tensors of the size of x.
struct RmsNormFunction : torch::autograd::Function<RmsNormFunction> {
  static Variable forward(AutogradContext* context, const Variable& x, const Variable& weight,
                          double epsilon) {
    const at::Tensor r = x.square().mean(-1, true).add_(epsilon).rsqrt_();
    context->save_for_backward({x, weight, r});
    return (x * r).mul_(weight);
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &x = saved[0], weight = saved[1], r = saved[2], g = gradients[0];
    const at::Tensor normed = x * r;
    const at::Tensor for_weight = (g * normed).reshape({-1, x.size(-1)}).sum(0);
    const at::Tensor u = g * weight;
    const at::Tensor mean = (u * normed).mean(-1, true);
    return {(u - normed * mean).mul_(r), for_weight, Variable()};
  }
};

}  // namespace

LayerNorm::LayerNorm(ParameterMaker& make, const std::string& name)
    : weight(make.take(name + ".weight")),
      bias(make.take(name + ".bias")),
      epsilon(make.model().norm_epsilon) {}

at::Tensor LayerNorm::operator()(const at::Tensor& x) const {
  if (!has_16_bits(x.scalar_type()) || !x.device().is_cpu())
    return at::layer_norm(x, {x.size(-1)}, weight, bias, epsilon);
  // In 32 bit: what is summed over all tokens loses too much in 16, in which processors do it.
  return at::layer_norm(x.to(at::kFloat), {x.size(-1)}, weight.to(at::kFloat), bias.to(at::kFloat), epsilon)
      .to(x.scalar_type());
}

RmsNorm::RmsNorm(ParameterMaker& make, const std::string& name)
    : weight(make.take(name + ".weight")), epsilon(make.model().norm_epsilon) {}

at::Tensor RmsNorm::operator()(const at::Tensor& x) const {
  if (!has_16_bits(x.scalar_type())) return RmsNormFunction::apply(x, weight, epsilon);
  return RmsNormFunction::apply(x.to(at::kFloat), weight.to(at::kFloat), epsilon).to(x.scalar_type());
}

}  // namespace sailor
