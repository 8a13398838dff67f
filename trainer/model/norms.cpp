#include "trainer/model/norms.h"

#include <torch/csrc/autograd/custom_function.h>

#include "trainer/model/element_types.h"
#include "trainer/model/tensor_parallel.h"

namespace sailor {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Variable;
using torch::autograd::variable_list;

// With r = 1 / sqrt(mean(x^2) + epsilon) and n elements: y = x r w. For u = g w, the gradient for x is r u -
// x r^3 sum(x u) / n, that for w the sum of g x r over all tokens. Keeps x and r, where a composition of
// elementwise operators would keep four tensors of the size of x. Sums over x are those of all members.
struct RmsNormFunction : torch::autograd::Function<RmsNormFunction> {
  static at::Tensor mean_over(const at::Tensor& x, int64_t handle) {
    at::Tensor mean = x.mean(-1, true);
    if (handle == 0) return mean;
    Communicator& tp = *reinterpret_cast<Communicator*>(handle);
    mean = mean.contiguous();
    all_reduce(tp, mean);
    return mean.div_(tp.size());
  }
  static Variable forward(AutogradContext* context, const Variable& x, const Variable& weight, double epsilon,
                          int64_t handle) {
    const at::Tensor r = mean_over(x.square(), handle).add_(epsilon).rsqrt_();
    context->save_for_backward({x, weight, r});
    context->saved_data["handle"] = handle;
    context->saved_data["for_weight"] = weight.requires_grad();
    return (x * r).mul_(weight);
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &x = saved[0], weight = saved[1], r = saved[2], g = gradients[0];
    const at::Tensor normed = x * r;
    at::Tensor for_weight;
    if (context->saved_data["for_weight"].toBool())
      for_weight = (g * normed).reshape({-1, x.size(-1)}).sum(0);
    const at::Tensor u = g * weight;
    const at::Tensor mean = mean_over(u * normed, context->saved_data["handle"].toInt());
    return {(u - normed * mean).mul_(r), for_weight, Variable(), Variable()};
  }
};

at::Tensor layer_norm(const at::Tensor& x, const NormLayer& norm) {
  if (!has_16_bits(x.scalar_type()) || !x.device().is_cpu())
    return at::layer_norm(x, {x.size(-1)}, norm.weight, norm.bias, norm.epsilon);
  // In 32 bit: what is summed over all tokens loses too much in 16, in which processors do it.
  return at::layer_norm(x.to(at::kFloat), {x.size(-1)}, norm.weight.to(at::kFloat), norm.bias.to(at::kFloat),
                        norm.epsilon)
      .to(x.scalar_type());
}

// In 32 bit, if it has fewer.
at::Tensor wide(const at::Tensor& x) {
  return has_16_bits(x.scalar_type()) ? x.to(at::kFloat) : x;
}

// The weight that multiplies.
at::Tensor factor_of(const at::Tensor& weight, bool zero_centred) {
  return zero_centred ? wide(weight) + 1 : weight;
}

}  // namespace

at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight, double epsilon, Communicator* tp) {
  const int64_t handle = tp && tp->size() > 1 ? reinterpret_cast<int64_t>(tp) : 0;
  return RmsNormFunction::apply(wide(x), wide(weight), epsilon, handle).to(x.scalar_type());
}

NormLayer::NormLayer(ParameterMaker& make, const std::string& name)
    : kind(make.model().norm),
      weight(make.take_if_listed(name + ".weight")),
      bias(make.take_if_listed(name + ".bias")),
      epsilon(make.model().norm_epsilon) {}

at::Tensor NormLayer::operator()(const at::Tensor& x) const {
  if (!is_there()) return x;
  if (kind == Norm::layer) return layer_norm(x, *this);
  return rms_norm(x, factor_of(weight, kind == Norm::zero_centred_rms), epsilon);
}

QueryKeyNorm::QueryKeyNorm(ParameterMaker& make)
    : kind_(make.model().qk_norm),
      zero_centred_(make.model().norm == Norm::zero_centred_rms),
      epsilon_(make.model().norm_epsilon),
      tp_(make.context().tp),
      query_weight_(make.take_if_listed("query_norm.weight")),
      key_weight_(make.take_if_listed("key_norm.weight")) {}

void QueryKeyNorm::apply(at::Tensor& query, at::Tensor& key) const {
  if (kind_ == QkNorm::none) return;
  const at::Tensor for_query = factor_of(query_weight_, zero_centred_),
                   for_key = factor_of(key_weight_, zero_centred_);
  if (kind_ == QkNorm::heads) {
    // Every rank has the weights, and a part of the heads that they are for.
    const at::Tensor both = enter_tensor_parallel(wide(at::stack({for_query, for_key})), tp_);
    query = rms_norm(query, both[0], epsilon_);
    key = rms_norm(key, both[1], epsilon_);
    return;
  }
  const auto over_all_heads = [&](const at::Tensor& x, const at::Tensor& weight) {
    const at::Tensor rows = x.transpose(1, 2);  // [batch, tokens, heads, size]
    return rms_norm(rows.reshape({x.size(0), x.size(2), -1}), weight, epsilon_, tp_)
        .view(rows.sizes())
        .transpose(1, 2);
  };
  query = over_all_heads(query, for_query);
  key = over_all_heads(key, for_key);
}

}  // namespace sailor
