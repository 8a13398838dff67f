// Products of matrices, by the fastest library that is there. ATen multiplies through the BLAS that its
// distribution chose; where that is OpenBLAS, oneDNN (which libtorch brings along) is 15 to 20 % faster in 32
// bit on processors with AVX-512. bf16 on an x86-64 processor for which oneDNN has no bf16 is multiplied in
// 32 bits and rounded once, which is both faster and closer than ATen's loops. Everything else goes to ATen:
// other types, devices and processors, and matrices that are neither rows nor columns one after the other.
// Which library multiplies depends on the processor and the matrices only, never on time.
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

// Whether products of what `x` holds should be made in fp32 and rounded: bf16 where oneDNN has none (it wants
// AVX-512 with BW, DQ and VL). There ATen's loops round every partial sum to 8 bits, so that sums stop
// growing at 256 times what is added, and take up to 40 times as long as in 32 bits.
bool needs_fp32_products(const at::Tensor& x);

}  // namespace sailor
