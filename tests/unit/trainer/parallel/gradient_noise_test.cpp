#include "trainer/parallel/gradient_noise.h"

#include <gtest/gtest.h>

#include <cmath>

namespace sailor {
namespace {

TEST(GradientNoise, OfOnePipelineIsUnknown) {
  EXPECT_FALSE(gradient_noise({4}, {8}, 4));
}

TEST(GradientNoise, EqualPipelinesHaveMcCandlishsEstimates) {
  const double small_batch = 3, large_batch = 12, small_square = 5, large_square = 2;  // of mean gradients
  const std::vector<double> squares(4, small_square / 16);
  const GradientNoise noise = *gradient_noise(squares, {3, 3, 3, 3}, large_square);
  EXPECT_NEAR(noise.signal,
              (large_batch * large_square - small_batch * small_square) / (large_batch - small_batch), 1e-12);
  EXPECT_NEAR(noise.noise, (small_square - large_square) / (1 / small_batch - 1 / large_batch), 1e-12);
}

// Parts b_p / B (g + e_p) with errors that are orthogonal to g and to each other, each as large as expected.
TEST(GradientNoise, IsExactForErrorsOfTheExpectedSize) {
  const double signal = 0.7, noise = 40;
  const std::vector<int64_t> sequences = {5, 2, 1};
  std::vector<double> squares;
  double square = signal;
  for (const int64_t count : sequences) {
    const auto b = static_cast<double>(count);
    squares.push_back(b / 8 * b / 8 * (signal + noise / b));
    square += b / 8 * b / 8 * noise / b;
  }
  const GradientNoise estimate = *gradient_noise(squares, sequences, square);
  EXPECT_NEAR(estimate.signal, signal, 1e-12);
  EXPECT_NEAR(estimate.noise, noise, 1e-11);
}

}  // namespace
}  // namespace sailor
