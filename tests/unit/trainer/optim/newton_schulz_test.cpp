#include "trainer/optim/newton_schulz.h"

#include <gtest/gtest.h>

#include <utility>

namespace sailor {
namespace {

at::Tensor some_matrix(int64_t rows, int64_t columns) {
  return (at::arange(rows * columns, at::kDouble) * 0.7).sin().view({rows, columns}) +
         at::eye(rows, columns, at::kDouble);
}

// The iteration changes the singular values, and nothing else.
TEST(NewtonSchulz, IsThePolynomialOfTheSingularValues) {
  for (const auto& [rows, columns] : {std::pair<int64_t, int64_t>{5, 5}, {3, 11}, {12, 4}, {1, 6}, {7, 1}}) {
    const at::Tensor matrix = some_matrix(rows, columns) * 37;
    const auto [u, s, v] = at::svd(matrix);
    at::Tensor values = s / s.norm();
    for (int i = 0; i < 5; ++i) values = 3.4445 * values - 4.7750 * values.pow(3) + 2.0315 * values.pow(5);
    const at::Tensor expected = at::mm(u * values, v.t()), result = orthogonalized(matrix, at::kDouble);
    EXPECT_EQ(result.sizes(), matrix.sizes());
    EXPECT_LE((result - expected).abs().max().item<double>(), 1e-12) << rows << " x " << columns;
  }
}

TEST(NewtonSchulz, SingularValuesEndNearOne) {
  const at::Tensor matrix = at::diag(at::logspace(0, -1.5, 8, 10, at::kDouble));
  const at::Tensor values = orthogonalized(matrix, at::kDouble).diag();
  EXPECT_GT(values.min().item<double>(), 0.65);
  EXPECT_LT(values.max().item<double>(), 1.25);
}

// Devices round a 16-bit product and what is added to it once; libtorch does so on some processors only.
bool rounds_once() {
  const at::Tensor x = some_matrix(24, 24).to(at::kBFloat16), wide = x.to(at::kFloat);
  const at::Tensor exact = at::addmm(wide, wide, wide, -4.5, 2), rough = at::addmm(x, x, x, -4.5, 2);
  return ((rough - exact).norm() / exact.norm()).item<double>() < 0.004;
}

TEST(NewtonSchulz, ProductsOf16BitsComeClose) {
  if (!rounds_once()) GTEST_SKIP() << "this processor rounds 16-bit products several times";
  const at::Tensor matrix = some_matrix(24, 40).to(at::kFloat);
  const at::Tensor exact = orthogonalized(matrix, at::kFloat);
  const at::Tensor rough = orthogonalized(matrix, at::kBFloat16);
  EXPECT_EQ(rough.scalar_type(), at::kFloat);
  EXPECT_LE(((rough - exact).norm() / exact.norm()).item<double>(), 0.03);
}

TEST(NewtonSchulz, OfNothingIsNothing) {
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16})
    EXPECT_EQ(orthogonalized(at::zeros({3, 4}), type).abs().max().item<double>(), 0);
}

}  // namespace
}  // namespace sailor
