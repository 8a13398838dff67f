// Differentiable products with a layer's matrices, and row lookup.
//
// The gradient of a weight is accumulated in place by the multiplication itself, without a temporary of the
// weight's size where the library can; that of a 16-bit weight also in fp32, if that is what its grad() is.
// The first gradient is created normally. So a weight's grad() always has the value that plain operators
// would give, or one that was rounded less often. Not twice differentiable. The backward of a trained weight
// needs x. With a `later` the weight's gradient is left to it, which keeps x and the gradient of the product;
// that of the bias is not.
#pragma once

#include <ATen/ATen.h>

#include "trainer/model/later_gradients.h"
#include "trainer/model/recomputed.h"
#include "trainer/model/tensor_parallel.h"

namespace sailor {

// Column-parallel: x [.., inputs] by `weight` [outputs, inputs], plus `bias` [outputs] if it is defined.
// `weight` is this rank's part of the outputs; the gradient of x is reduced over `tp`. Where the tokens are
// split, x is this rank's share; only this is kept, and the backward gathers it again for the weight.
at::Tensor product_by_outputs(const OperatorInput& x, const at::Tensor& weight, const at::Tensor& bias,
                              const TensorParallel& tp, const LaterGradientsPtr& later = {});

// Row-parallel: x [.., inputs] by `weight` [inputs, outputs], plus `bias` [outputs] if it is defined.
// `weight` is this rank's part of the inputs; products are reduced over `tp`, and `bias` is not split. Where
// the tokens are split, the result is this rank's share, and so is what the gradient of `bias` is from.
at::Tensor product_by_inputs(const OperatorInput& x, const at::Tensor& weight, const at::Tensor& bias,
                             const TensorParallel& tp, const LaterGradientsPtr& later = {});

// Where the gradient of a weight is accumulated in place; undefined where autograd has to look after it.
at::Tensor accumulated_gradient(const at::Tensor& weight);

// Rows of `table` [rows, columns] by int64 ids of any shape.
at::Tensor rows_of_table(const at::Tensor& table, const at::Tensor& ids);

}  // namespace sailor
