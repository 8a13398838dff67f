// Sum of the squares of n values, in double precision. Sums use blocks and lanes of fixed sizes, so that the
// result depends only on the values, not on ATen's number of threads. Instantiated for float and double.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <vector>

namespace sailor {

template <class T>
double square_sum(const T* values, int64_t count);

// Sum over all elements of the tensors, contiguous f32 or f64 in one memory. In host memory as above, one
// tensor after the other; on a device with its own operators, and the host waits for the result.
double square_sum(const std::vector<at::Tensor>& tensors);
// With libtorch's operators, in any memory.
double square_sum_by_operators(const std::vector<at::Tensor>& tensors);

}  // namespace sailor
