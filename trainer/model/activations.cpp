#include "trainer/model/activations.h"

#include <torch/csrc/autograd/custom_function.h>

#include <vector>

#include "trainer/kernels/activation.h"
#include "trainer/model/kernel_arguments.h"

namespace sailor {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Variable;
using torch::autograd::variable_list;

// The kernels of trainer/kernels/activation.h.
struct ActivationFunction : torch::autograd::Function<ActivationFunction> {
  static kernels::ActivationPass pass(const at::Tensor& x, int64_t kind, bool gated, at::Tensor& result) {
    kernels::ActivationPass pass;
    pass.type = element_of(x);
    pass.kind = static_cast<kernels::ActivationKind>(kind);
    pass.gated = gated;
    pass.count = x.numel() / (gated ? 2 : 1);
    pass.x = x.data_ptr();
    pass.result = result.data_ptr();
    return pass;
  }
  static Variable forward(AutogradContext* context, const Variable& input, int64_t kind, bool gated,
                          const RecomputedPtr& again) {
    const at::Tensor x = input.contiguous();
    std::vector<int64_t> sizes = x.sizes().vec();
    if (gated) sizes.back() /= 2;
    at::Tensor y = at::empty(sizes, x.options());
    kernels::activation_forward(pass(x, kind, gated, y), place_of_kernels(x));
    if (again)
      context->saved_data["again"] = packed(again);
    else
      context->save_for_backward({x});
    context->saved_data["kind"] = kind;
    context->saved_data["gated"] = gated;
    return y;
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto again = context->saved_data.find("again");
    const at::Tensor x = again != context->saved_data.end() ? unpacked(again->second).take()
                                                            : context->get_saved_variables()[0];
    const at::Tensor g = gradients[0].contiguous();
    at::Tensor for_x = at::empty_like(x);
    kernels::ActivationPass backward =
        pass(x, context->saved_data["kind"].toInt(), context->saved_data["gated"].toBool(), for_x);
    backward.for_y = g.data_ptr();
    kernels::activation_backward(backward, place_of_kernels(x));
    return {for_x, Variable(), Variable(), Variable()};
  }
};

kernels::ActivationKind kind_of(Activation activation) {
  switch (activation) {
    case Activation::gelu:
      return kernels::ActivationKind::gelu;
    case Activation::gelu_tanh:
      return kernels::ActivationKind::gelu_tanh;
    case Activation::silu:
      return kernels::ActivationKind::silu;
    case Activation::relu:
      break;
  }
  return kernels::ActivationKind::relu;
}

}  // namespace

at::Tensor activated(const OperatorInput& x, Activation activation, bool gated) {
  return ActivationFunction::apply(x.value, static_cast<int64_t>(kind_of(activation)), gated, x.again);
}

at::Tensor soft_capped(const at::Tensor& x, double cap) {
  // libtorch 1.13 has tanh() for fp16 on devices only: processors compute it in fp32 and round.
  const bool in_fp32 = x.scalar_type() == at::kHalf && x.device().is_cpu();
  const at::Tensor y = ((in_fp32 ? x.to(at::kFloat) : x) / cap).tanh() * cap;
  return in_fp32 ? y.to(at::kHalf) : y;
}

}  // namespace sailor
