// Sum of the squares of n values, in double precision. Sums run in blocks and lanes of fixed sizes, so that
// the result depends on the values alone, not on the number of threads (ATen's). Instantiated for float and
// double.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <vector>

namespace sailor {

template <class T>
double square_sum(const T* values, int64_t count);

// Of all elements of the tensors, contiguous ones of f32 or f64 in one place. In the host's memory as above,
// one tensor after the other; on a device by its own operators, and the host waits for the result.
double square_sum(const std::vector<at::Tensor>& tensors);
// As on a device, wherever they are.
double square_sum_by_operators(const std::vector<at::Tensor>& tensors);

}  // namespace sailor
