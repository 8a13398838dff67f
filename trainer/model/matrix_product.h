// Matrix products by the fastest available library. ATen uses the BLAS that its distribution chose; if that
// is OpenBLAS, oneDNN (part of libtorch) is 15 to 20 % faster for fp32 on processors with AVX-512. bf16 on an
// x86-64 processor for which oneDNN has no bf16 is multiplied in fp32 and rounded once, which is both faster
// and more accurate than ATen's loops; so is fp16 on every processor, for which libtorch 1.13 has no products
// at all. Everything else uses ATen: other types, devices and processors, and matrices with strides in both
// dimensions. The choice only depends on the processor and the matrices, never on time.
//
// Matrices are two-dimensional; transposed views (t()) are supported equally. Not differentiable. Safe from
// any thread.
#pragma once

#include <ATen/ATen.h>

namespace sailor {

// a [m, k] times b [k, n]; plus `bias` [n] in every row if it is defined.
at::Tensor matrix_product(const at::Tensor& a, const at::Tensor& b, const at::Tensor& bias = {});

// sum [m, n] += a [m, k] times b [k, n]. A sum of 16-bit matrices may be fp32: on devices their product is
// not rounded on the way to it.
void add_matrix_product(at::Tensor& sum, const at::Tensor& a, const at::Tensor& b);

// Should products of `x` be computed in fp32 and rounded? On processors true for fp16, and for bf16 where
// oneDNN does not support it (it needs AVX-512 with BW, DQ and VL). There ATen's loops round every partial
// sum to 8 bits, so that sums stop growing at 256 times the addend, and take up to 40 times as long as in
// fp32.
bool needs_fp32_products(const at::Tensor& x);

}  // namespace sailor
