#include "planner/simulator/minimize.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <stdexcept>

namespace sailor {
namespace {

TEST(Minimize, FindsTheBottomOfABowl) {
  const auto bowl = [](std::span<const double> x) {
    return 3 + std::pow(x[0] - 1, 2) + 10 * std::pow(x[1] + 2, 2) + std::pow(x[2], 2);
  };
  const Minimum found = minimize(bowl, {0, 0, 5}, {1, 1, 1});
  EXPECT_NEAR(found.at[0], 1, 1e-2);
  EXPECT_NEAR(found.at[1], -2, 1e-2);
  EXPECT_NEAR(found.at[2], 0, 1e-2);
  EXPECT_NEAR(found.value, 3, 1e-4);
  EXPECT_DOUBLE_EQ(found.value, bowl(found.at));
}

TEST(Minimize, FollowsACurvedValley) {
  // Rosenbrock's function plus a constant, because improvements are judged relatively.
  const auto valley = [](std::span<const double> x) {
    return 1 + 100 * std::pow(x[1] - x[0] * x[0], 2) + std::pow(1 - x[0], 2);
  };
  const Minimum found = minimize(valley, {-1.2, 1}, {0.5, 0.5});
  EXPECT_NEAR(found.at[0], 1, 0.02);
  EXPECT_NEAR(found.at[1], 1, 0.04);
  EXPECT_NEAR(found.value, 1, 1e-3);
  EXPECT_LE(found.evaluations, 2010);
}

TEST(Minimize, StaysWhereTheFunctionIsDefined) {
  const auto half = [](std::span<const double> x) {
    return x[0] < 0 ? std::numeric_limits<double>::infinity() : 1 + x[0] + std::pow(x[1] - 1, 2);
  };
  const Minimum found = minimize(half, {3, 3}, {1, 1});
  EXPECT_GE(found.at[0], 0);
  EXPECT_NEAR(found.at[0], 0, 1e-2);
  EXPECT_NEAR(found.at[1], 1, 2e-2);
}

TEST(Minimize, NeverReturnsMoreThanItStartedWithAndObeysItsLimit) {
  int calls = 0;
  const auto rough = [&](std::span<const double> x) {
    ++calls;
    return std::sin(20 * x[0]) + std::cos(13 * x[1]) + 5;
  };
  const double start[] = {0.3, 0.7};
  const double before = rough(start);
  calls = 0;
  const Minimum found = minimize(rough, {0.3, 0.7}, {0.1, 0.1}, 50);
  EXPECT_LE(found.value, before);
  EXPECT_EQ(found.evaluations, calls);
  EXPECT_LE(calls, 50 + 2);  // a step that began is finished
}

TEST(Minimize, IsDeterministic) {
  const auto f = [](std::span<const double> x) { return 1 + std::fabs(x[0] - 0.3) + std::fabs(x[0] * x[1]); };
  const Minimum a = minimize(f, {1, 1}, {0.2, 0.2}), b = minimize(f, {1, 1}, {0.2, 0.2});
  EXPECT_EQ(a.at, b.at);
  EXPECT_EQ(a.evaluations, b.evaluations);
}

TEST(Minimize, NothingToVaryIsOneEvaluation) {
  const Minimum found = minimize([](std::span<const double>) { return 4.0; }, {}, {});
  EXPECT_EQ(found.value, 4);
  EXPECT_EQ(found.evaluations, 1);
  EXPECT_THROW(minimize([](std::span<const double>) { return 0.0; }, {1}, {}), std::invalid_argument);
}

}  // namespace
}  // namespace sailor
