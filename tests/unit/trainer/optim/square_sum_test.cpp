#include "trainer/optim/square_sum.h"

#include <gtest/gtest.h>

#include <vector>

namespace sailor {
namespace {

TEST(SquareSum, CountsEveryElementOnceWhateverTheLength) {
  for (const int64_t n : {0, 1, 31, 32, 33, 100, 1000}) {
    std::vector<float> values;
    double expected = 0;
    for (int64_t i = 0; i < n; ++i) {
      values.push_back(static_cast<float>(i % 17) - 8);
      expected += static_cast<double>(values.back()) * static_cast<double>(values.back());
    }
    EXPECT_EQ(square_sum(values.data(), n), expected) << n;
  }
}

TEST(SquareSum, KeepsDoublePrecisionForManySmallValues) {
  const std::vector<float> values(1 << 20, 1e-4f);
  const double one = static_cast<double>(1e-4f) * static_cast<double>(1e-4f);
  EXPECT_NEAR(square_sum(values.data(), 1 << 20) / ((1 << 20) * one), 1.0, 1e-12);
}

}  // namespace
}  // namespace sailor
