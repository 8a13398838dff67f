#include "trainer/model/linear.h"

#include "trainer/model/weight_product.h"

namespace sailor {
namespace {

// A bias stands as the rows of the weight do.
StoredRows bias_of(const StoredRows& weight) {
  StoredRows bias = weight.with_suffix(".bias");
  bias.transposed = false;
  return bias;
}

}  // namespace

OutputSplitLinear::OutputSplitLinear(ParameterMaker& make, const std::string& name, int64_t outputs,
                                     const StoredRows& stored, bool with_bias)
    : weight(make.matrix(name + ".weight", outputs, kInitialDeviation, stored.with_suffix(".weight"))),
      tp(make.context().tp) {
  if (with_bias) bias = make.sharded_vector(name + ".bias", outputs, 0.0, bias_of(stored));
}

at::Tensor OutputSplitLinear::operator()(const at::Tensor& x) const {
  return product_by_outputs(x, weight, bias, tp);
}

InputSplitLinear::InputSplitLinear(ParameterMaker& make, const std::string& name, int64_t inputs,
                                   const StoredRows& stored, bool with_bias)
    : weight(make.matrix(name + ".weight", inputs, residual_deviation(make.model()),
                         stored.with_suffix(".weight"))),
      tp(make.context().tp) {
  if (!with_bias) return;
  // The rows of the weight are inputs: the bias has the outputs' order, which is the tensor's own.
  bias = make.vector(name + ".bias", make.model().hidden, 0.0, stored.pieces.front().tensor + ".bias");
}

at::Tensor InputSplitLinear::operator()(const at::Tensor& x) const {
  return product_by_inputs(x, weight, bias, tp);
}

}  // namespace sailor
