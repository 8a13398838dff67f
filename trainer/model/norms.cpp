#include "trainer/model/norms.h"

#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>

#include "trainer/kernels/norm.h"
#include "trainer/model/element_types.h"
#include "trainer/model/kernel_arguments.h"
#include "trainer/model/weight_product.h"

namespace sailor {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Variable;
using torch::autograd::variable_list;

// The kernels of trainer/kernels/norm.h. Returns the residual stream, x plus the addition, and its norm: the
// gradients of both arrive together. Without an addition (one without elements) the stream is x.
struct NormFunction : torch::autograd::Function<NormFunction> {
  static variable_list forward(AutogradContext* context, const Variable& input, const Variable& addition,
                               const Variable& weight, const Variable& bias, double epsilon, double offset,
                               bool centred) {
    TORCH_CHECK(weight.is_contiguous() && bias.is_contiguous(), "the weights of a norm");
    const at::Tensor x = input.contiguous(), added = addition.contiguous();
    const bool adds = addition.numel() > 0 || input.numel() == 0, has_bias = bias.numel() > 0;
    const at::TensorOptions computed = x.options().dtype(computed_type(x));
    at::Tensor sum = adds ? at::empty_like(x) : x, y = at::empty_like(x);
    kernels::NormForward norm;
    norm.type = element_of(x);
    norm.weight_type = element_of(weight);
    norm.centred = centred;
    norm.columns = x.size(-1);
    norm.rows = x.numel() / std::max<int64_t>(1, norm.columns);
    norm.epsilon = epsilon;
    norm.weight_offset = offset;
    at::Tensor mean = at::empty({centred ? norm.rows : 0}, computed),
               scale = at::empty({norm.rows}, computed);
    norm.x = x.data_ptr();
    norm.addition = adds ? added.data_ptr() : nullptr;
    norm.weight = weight.data_ptr();
    norm.bias = has_bias ? bias.data_ptr() : nullptr;
    norm.sum = adds ? sum.data_ptr() : nullptr;
    norm.y = y.data_ptr();
    norm.mean = centred ? mean.data_ptr() : nullptr;
    norm.scale = scale.data_ptr();
    kernels::norm_forward(norm, place_of_kernels(x));
    context->set_materialize_grads(false);
    context->save_for_backward({adds ? sum : input, weight, mean, scale, bias});
    context->saved_data["adds"] = adds;
    context->saved_data["offset"] = offset;
    context->saved_data["centred"] = centred;
    context->saved_data["for_weight"] = weight.requires_grad();
    context->saved_data["for_bias"] = has_bias && bias.requires_grad();
    return {adds ? sum : input, y};
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const variable_list saved = context->get_saved_variables();
    const bool for_weight = context->saved_data["for_weight"].toBool(),
               for_bias = context->saved_data["for_bias"].toBool();
    // The same gradient, if there is an addition: what is used once, autograd need not copy.
    const auto of_addition = [&](const at::Tensor& gradient) {
      return context->saved_data["adds"].toBool() ? gradient : Variable();
    };
    if (!gradients[1].defined())
      return {gradients[0], of_addition(gradients[0]), Variable(), Variable(), Variable(), Variable(),
              Variable()};
    const at::Tensor sum = saved[0].contiguous(), for_y = gradients[1].contiguous();
    const at::Tensor for_sum = gradients[0].defined() ? gradients[0].contiguous() : at::Tensor();
    at::Tensor for_x = at::empty_like(sum), weight_gradient, bias_gradient, partial_sums;
    kernels::NormBackward norm;
    norm.type = element_of(sum);
    norm.weight_type = element_of(saved[1]);
    norm.centred = context->saved_data["centred"].toBool();
    norm.columns = sum.size(-1);
    norm.rows = sum.numel() / std::max<int64_t>(1, norm.columns);
    norm.weight_offset = context->saved_data["offset"].toDouble();
    norm.sum = sum.data_ptr();
    norm.weight = saved[1].data_ptr();
    norm.mean = saved[2].data_ptr();
    norm.scale = saved[3].data_ptr();
    norm.for_y = for_y.data_ptr();
    norm.for_sum = for_sum.defined() ? for_sum.data_ptr() : nullptr;
    norm.for_x = for_x.data_ptr();
    if (for_weight || for_bias) {
      partial_sums = at::empty({norm.parts(), 2, norm.columns}, saved[3].options());
      norm.partial_sums = partial_sums.data_ptr();
    }
    // Both gradients are there, or neither is: a step computes all or none.
    const at::Tensor &weight = saved[1], &bias = saved[4];
    const at::Tensor weight_sum = for_weight ? accumulated_gradient(weight) : at::Tensor();
    const at::Tensor bias_sum = for_bias ? accumulated_gradient(bias) : at::Tensor();
    norm.adds = (!for_weight || weight_sum.defined()) && (!for_bias || bias_sum.defined());
    if (for_weight && !norm.adds) weight_gradient = at::empty_like(weight);
    if (for_bias && !norm.adds) bias_gradient = at::empty_like(bias);
    const bool has_sum = norm.adds && (for_weight || for_bias);
    norm.gradient_type = element_of(!has_sum ? weight : for_weight ? weight_sum : bias_sum);
    if (for_weight) norm.for_weight = (norm.adds ? weight_sum : weight_gradient).data_ptr();
    if (for_bias) norm.for_bias = (norm.adds ? bias_sum : bias_gradient).data_ptr();
    kernels::norm_backward(norm, place_of_kernels(sum));
    return {for_x, of_addition(for_x), weight_gradient, bias_gradient, Variable(), Variable(), Variable()};
  }
};

// Autograd's functions want defined arguments: one without elements is none.
at::Tensor or_nothing(const at::Tensor& tensor, const at::Tensor& like) {
  return tensor.defined() ? tensor : at::empty({0}, like.options());
}

// RMS norm of rows whose elements are split over the ranks of a TP group. With r = 1 / sqrt(mean(x^2) +
// epsilon) y = x r w. For u = g w, the gradient for x is r u - x r^3 mean(x u), that for w the sum of g x r
// over all tokens. Means are those over all members.
struct SplitRmsNorm : torch::autograd::Function<SplitRmsNorm> {
  static at::Tensor mean_over(const at::Tensor& x, int64_t handle) {
    Communicator& tp = *reinterpret_cast<Communicator*>(handle);
    at::Tensor mean = x.mean(-1, true).contiguous();
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

// In 32 bit, if it has fewer.
at::Tensor wide(const at::Tensor& x) {
  return x.to(sum_type(x.scalar_type()));
}

}  // namespace

at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight, bool zero_centred, double epsilon,
                    Communicator* tp) {
  const double offset = zero_centred ? 1 : 0;
  if (!tp || tp->size() == 1) {
    const at::Tensor nothing = at::empty({0}, x.options());
    return NormFunction::apply(x, nothing, weight, nothing, epsilon, offset, /*centred=*/false)[1];
  }
  return SplitRmsNorm::apply(wide(x), zero_centred ? wide(weight) + offset : wide(weight), epsilon,
                             reinterpret_cast<int64_t>(tp))
      .to(x.scalar_type());
}

NormLayer::NormLayer(ParameterMaker& make, const std::string& name)
    : kind(make.model().norm),
      weight(make.take_if_listed(name + ".weight")),
      bias(make.take_if_listed(name + ".bias")),
      epsilon(make.model().norm_epsilon) {}

NormedStream NormLayer::after_adding(const at::Tensor& x, const at::Tensor& addition) const {
  if (!is_there()) {
    const at::Tensor stream = addition.defined() ? x + addition : x;
    return {stream, stream};
  }
  const variable_list both =
      NormFunction::apply(x, or_nothing(addition, x), weight, or_nothing(bias, x), epsilon,
                          kind == Norm::zero_centred_rms ? 1.0 : 0.0, kind == Norm::layer);
  return {both[0], both[1]};
}

QueryKeyNorm::QueryKeyNorm(ParameterMaker& make)
    : kind_(make.model().qk_norm),
      zero_centred_(make.model().norm == Norm::zero_centred_rms),
      epsilon_(make.model().norm_epsilon),
      query_weight_(make.take_if_listed("query_norm.weight")),
      key_weight_(make.take_if_listed("key_norm.weight")) {}

void QueryKeyNorm::apply(at::Tensor& query, at::Tensor& key, const TensorParallel& tp) const {
  if (!is_there()) return;
  if (kind_ == QkNorm::heads) {
    // Every rank has the weights, and a part of the heads that they are for. Partial gradients of replicated
    // parameters are summed at the end where tokens are split.
    const at::Tensor weights = wide(at::stack({query_weight_, key_weight_}));
    const at::Tensor both = tp.splits_tokens() ? weights : enter_tensor_parallel(weights, tp);
    query = rms_norm(query, both[0], zero_centred_, epsilon_);
    key = rms_norm(key, both[1], zero_centred_, epsilon_);
    return;
  }
  const auto over_all_heads = [&](const at::Tensor& x, const at::Tensor& weight) {
    const at::Tensor rows = x.transpose(1, 2);  // [batch, tokens, heads, size]
    return rms_norm(rows.reshape({x.size(0), x.size(2), -1}), weight, zero_centred_, epsilon_, tp.group)
        .view(rows.sizes())
        .transpose(1, 2);
  };
  query = over_all_heads(query, query_weight_);
  key = over_all_heads(key, key_weight_);
}

}  // namespace sailor
