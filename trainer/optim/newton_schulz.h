// The nearest semi-orthogonal matrix, approximately, by a Newton-Schulz iteration (Jordan et al. 2024; the
// quintic of torch.optim.Muon, whose singular values end between 0.7 and 1.2). Pure.
#pragma once

#include <ATen/ATen.h>

namespace sailor {

// Of a 2-D matrix in f32 or f64, in its type and shape; zero if the matrix is. Products are computed in
// `type`; with 16 bits they are several times as fast on GPUs, and the result is as good for training.
at::Tensor orthogonalized(const at::Tensor& matrix, at::ScalarType type);

}  // namespace sailor
