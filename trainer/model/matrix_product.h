// Products of matrices, by the fastest library that is there. ATen multiplies through the BLAS that its
// distribution chose; where that is OpenBLAS, oneDNN (which libtorch brings along) is 15 to 20 % faster in 32
// bit on processors with AVX-512. Everything else goes to ATen: other types, devices and processors, and
// matrices that are neither rows nor columns one after the other. Which library multiplies depends on the
// processor and the matrices only, never on time.
//
// Matrices are two-dimensional, and transposed views (t()) are as good as others. Not differentiable. Safe
// from any thread.
#pragma once

#include <ATen/ATen.h>

namespace sailor {

// a [m, k] times b [k, n]; plus `bias` [n] in every row where that is defined.
at::Tensor matrix_product(const at::Tensor& a, const at::Tensor& b, const at::Tensor& bias = {});

// sum [m, n] += a [m, k] times b [k, n].
void add_matrix_product(at::Tensor& sum, const at::Tensor& a, const at::Tensor& b);

}  // namespace sailor
