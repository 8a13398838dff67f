#include "trainer/model/activations.h"

namespace sailor {
namespace {

// libtorch 1.13 has these functions for fp16 on devices only: processors compute them in fp32 and round.
template <class Function>
at::Tensor apply(const at::Tensor& x, const Function& function) {
  if (x.scalar_type() != at::kHalf || !x.device().is_cpu()) return function(x);
  return function(x.to(at::kFloat)).to(at::kHalf);
}

}  // namespace

at::Tensor gelu_by_erf(const at::Tensor& x) {
  return apply(x, [](const at::Tensor& y) { return at::gelu(y); });
}

at::Tensor gelu_by_tanh(const at::Tensor& x) {
  return apply(x, [](const at::Tensor& y) { return at::gelu(y, "tanh"); });
}

at::Tensor swish(const at::Tensor& x) {
  return apply(x, [](const at::Tensor& y) { return at::silu(y); });
}

at::Tensor rectified(const at::Tensor& x) {
  return apply(x, [](const at::Tensor& y) { return at::relu(y); });
}

at::Tensor soft_capped(const at::Tensor& x, double cap) {
  return apply(x, [cap](const at::Tensor& y) { return (y / cap).tanh() * cap; });
}

ActivationFunction activation_of(Activation activation) {
  switch (activation) {
    case Activation::gelu:
      return gelu_by_erf;
    case Activation::gelu_tanh:
      return gelu_by_tanh;
    case Activation::silu:
      return swish;
    case Activation::relu:
      break;
  }
  return rectified;
}

}  // namespace sailor
