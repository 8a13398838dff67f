// What a layer computes with its matrices, differentiable: products, and the lookup of rows.
//
// A weight that has a gradient gets the next one added in place, by the multiplication itself; nothing the
// size of the weight is made on the way. Its first gradient goes the ordinary way, as does every one of
// another type than the weight's. So a weight's grad() is at any time what plain operators would have left
// there. Not differentiable twice.
#pragma once

#include <ATen/ATen.h>

#include "trainer/comm/communicator.h"

namespace sailor {

// x [.., inputs] by `weight` [outputs, inputs], plus `bias` [outputs] where that is defined. `weight` is this
// rank's part, by outputs; the gradient for x is summed over `tp` (nullptr = alone).
at::Tensor product_by_outputs(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                              Communicator* tp);

// x [.., inputs] by `weight` [inputs, outputs], plus `bias` [outputs] where that is defined. `weight` is this
// rank's part, by inputs; products are summed over `tp`, and `bias` is whole.
at::Tensor product_by_inputs(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                             Communicator* tp);

// Rows of `table` [rows, columns] by int64 ids of any shape.
at::Tensor rows_of_table(const at::Tensor& table, const at::Tensor& ids);

}  // namespace sailor
