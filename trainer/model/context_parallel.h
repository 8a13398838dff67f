// Context parallelism by heads (Jacobs et al. 2023, "DeepSpeed Ulysses").
//
// The tokens of a microbatch are split over the members of a group, all of which have the same weights. Only
// attention looks at other tokens: before it the members exchange their tokens' queries, keys and values so
// that each has all tokens of its part of the heads, and after it the results go back. So attention itself is
// computed as without: documents, windows and causality need no care, and all members have equal work.
// Differentiable: the backward of each exchange is the other one.
//
// Both functions are collective over `tp.context`, on the calling thread, like those of tensor_parallel.h.
#pragma once

#include <ATen/ATen.h>

#include "trainer/model/tensor_parallel.h"

namespace sailor {

// [tokens of the region, columns] to [sequences, length, columns / members]: all tokens of block
// tp.context->rank() of the columns. Without a context-parallel group x is returned as it is.
at::Tensor gather_tokens(const at::Tensor& x, const TensorParallel& tp);

// The reverse: [sequences, length, columns / members] to [tokens of the region, columns].
at::Tensor scatter_tokens(const at::Tensor& x, const TensorParallel& tp);

}  // namespace sailor
