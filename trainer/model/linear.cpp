#include "trainer/model/linear.h"

#include "trainer/model/weight_product.h"

namespace sailor {
namespace {

at::Tensor with_adapters(const at::Tensor& result, const LoraLayer& lora, const at::Tensor& x,
                         const TensorParallel& tp) {
  return lora.empty() ? result : result + lora(x, tp);
}

}  // namespace

OutputSplitLinear::OutputSplitLinear(ParameterMaker& make, const std::string& name)
    : weight(make.take(name + ".weight")), bias(make.take_if_listed(name + ".bias")), lora(make, name) {}

at::Tensor OutputSplitLinear::operator()(const OperatorInput& x, const TensorParallel& tp,
                                         const LaterGradientsPtr& later) const {
  return with_adapters(product_by_outputs(x, weight, bias, tp, later), lora, x.value, tp);
}

InputSplitLinear::InputSplitLinear(ParameterMaker& make, const std::string& name)
    : weight(make.take(name + ".weight")), bias(make.take_if_listed(name + ".bias")), lora(make, name) {}

at::Tensor InputSplitLinear::operator()(const OperatorInput& x, const TensorParallel& tp,
                                        const LaterGradientsPtr& later) const {
  return with_adapters(product_by_inputs(x, weight, bias, tp, later), lora, x.value, tp);
}

}  // namespace sailor
