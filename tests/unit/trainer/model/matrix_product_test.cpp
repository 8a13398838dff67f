#include "trainer/model/matrix_product.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace sailor {
namespace {

// Every way in which a matrix may lie in memory: rows, columns, a part of a larger one, neither.
std::vector<at::Tensor> layouts(const at::Tensor& values) {
  const int64_t rows = values.size(0), columns = values.size(1);
  at::Tensor large = at::zeros({rows + 3, columns + 5}, values.options());
  large.narrow(0, 1, rows).narrow(1, 2, columns).copy_(values);
  at::Tensor every_second = at::zeros({rows, 2 * columns}, values.options());
  every_second.slice(1, 0, 2 * columns, 2).copy_(values);
  return {values.clone(at::MemoryFormat::Contiguous), values.t().clone(at::MemoryFormat::Contiguous).t(),
          large.narrow(0, 1, rows).narrow(1, 2, columns), every_second.slice(1, 0, 2 * columns, 2)};
}

TEST(MatrixProduct, IsThatOfDoublesInEveryLayout) {
  at::manual_seed(5);
  for (const auto& [m, k, n] : std::vector<std::array<int64_t, 3>>{
           {1, 1, 1}, {1, 64, 3}, {33, 17, 65}, {128, 96, 1}, {70, 200, 130}}) {
    const at::Tensor a = at::randn({m, k}), b = at::randn({k, n}), bias = at::randn({n}),
                     before = at::randn({m, n});
    const at::Tensor exact = at::mm(a.to(at::kDouble), b.to(at::kDouble));
    const double limit = 1e-6 * static_cast<double>(k + 1);
    for (const at::Tensor& left : layouts(a))
      for (const at::Tensor& right : layouts(b)) {
        EXPECT_LT((matrix_product(left, right) - exact).abs().max().item<double>(), limit);
        EXPECT_LT((matrix_product(left, right, bias) - (exact + bias)).abs().max().item<double>(), limit);
        for (at::Tensor sum : layouts(before)) {
          add_matrix_product(sum, left, right);
          EXPECT_LT((sum - (exact + before)).abs().max().item<double>(), 2 * limit);
        }
      }
  }
}

TEST(MatrixProduct, OfDoublesIsThatOfATen) {
  const at::Tensor a = at::randn({5, 7}, at::kDouble), b = at::randn({7, 3}, at::kDouble);
  EXPECT_TRUE(at::equal(matrix_product(a, b), at::mm(a, b)));
}

// A result of 16 bits is rounded once: partial sums of 8 bits would be off by several per cent here.
TEST(MatrixProduct, Of16BitsIsSummedInFp32) {
  at::manual_seed(6);
  const int64_t k = 2000;
  for (const at::ScalarType type : {at::kBFloat16, at::kHalf}) {
    const at::Tensor a = at::rand({9, k}).to(type), b = at::rand({k, 11}).to(type),
                     bias = at::randn({11}).to(type), before = at::randn({9, 11}).to(type);
    const at::Tensor exact = at::mm(a.to(at::kDouble), b.to(at::kDouble));
    const auto off = [](const at::Tensor& ours, const at::Tensor& expected) {
      return ((ours.to(at::kDouble) - expected) / expected).abs().max().item<double>();
    };
    // Half a step of 8 or 11 bits, and what fp32 and the bias's rounding add.
    const double limit = type == at::kHalf ? 1.0 / 2048 : 1.0 / 256;
    for (const at::Tensor& left : layouts(a))
      for (const at::Tensor& right : layouts(b)) {
        EXPECT_EQ(matrix_product(left, right).scalar_type(), type);
        EXPECT_LT(off(matrix_product(left, right), exact), limit);
        EXPECT_LT(off(matrix_product(left, right, bias), exact + bias), limit);
        at::Tensor sum = before.clone();
        add_matrix_product(sum, left, right);
        EXPECT_LT(off(sum, exact + before), limit);
      }
  }
}

TEST(MatrixProduct, OfNothingIsNothingAndWrongSizesAreErrors) {
  EXPECT_EQ(matrix_product(at::zeros({0, 4}), at::zeros({4, 3})).sizes(), (at::IntArrayRef{0, 3}));
  EXPECT_TRUE(at::equal(matrix_product(at::zeros({2, 0}), at::zeros({0, 3})), at::zeros({2, 3})));
  EXPECT_THROW(matrix_product(at::zeros({2, 4}), at::zeros({3, 3})), c10::Error);
}

TEST(MatrixProduct, IsTheSameEveryTime) {
  const at::Tensor a = at::randn({300, 200}), b = at::randn({200, 100});
  const at::Tensor first = matrix_product(a, b);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(at::equal(matrix_product(a, b), first));
}

}  // namespace
}  // namespace sailor
