#include "trainer/optim/newton_schulz.h"

#include <ATen/core/grad_mode.h>

namespace sailor {
namespace {

constexpr int kIterations = 5;
constexpr double kA = 3.4445, kB = -4.7750, kC = 2.0315;
constexpr double kEpsilon = 1e-7;

}  // namespace

at::Tensor orthogonalized(const at::Tensor& matrix, at::ScalarType type) {
  const at::NoGradGuard no_graph;
  const bool tall = matrix.size(0) > matrix.size(1);  // the smaller Gram matrix
  const at::Tensor norm = matrix.norm().clamp_min(kEpsilon);
  at::Tensor x = (tall ? matrix.t() : matrix).div(norm).to(type).contiguous();
  for (int i = 0; i < kIterations; ++i) {
    const at::Tensor gram = at::mm(x, x.t());
    x = at::addmm(x, at::addmm(gram, gram, gram, kB, kC), x, kA);
  }
  return (tall ? x.t() : x).to(matrix.scalar_type()).contiguous();
}

}  // namespace sailor
