#include "trainer/model/linear.h"

#include "trainer/model/weight_product.h"

namespace sailor {

OutputSplitLinear::OutputSplitLinear(ParameterMaker& make, const std::string& name)
    : weight(make.take(name + ".weight")), bias(make.take_if_listed(name + ".bias")), tp(make.context().tp) {}

at::Tensor OutputSplitLinear::operator()(const at::Tensor& x) const {
  return product_by_outputs(x, weight, bias, tp);
}

InputSplitLinear::InputSplitLinear(ParameterMaker& make, const std::string& name)
    : weight(make.take(name + ".weight")), bias(make.take_if_listed(name + ".bias")), tp(make.context().tp) {}

at::Tensor InputSplitLinear::operator()(const at::Tensor& x) const {
  return product_by_inputs(x, weight, bias, tp);
}

}  // namespace sailor
