#include "trainer/optim/spike_guard.h"

#include <gtest/gtest.h>

#include <limits>

namespace sailor {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();

SpikeGuard guard_with(const SpikeSpec& spec, const std::vector<double>& norms) {
  SpikeGuard guard(spec);
  for (const double norm : norms) guard.step_ended(norm, false);
  return guard;
}

TEST(SpikeGuard, ComparesWithTheMedianOfTheLastUpdates) {
  const SpikeSpec spec{.factor = 2, .window = 3};
  EXPECT_FALSE(guard_with(spec, {1, 1}).is_spike(1, 1e9)) << "too few to compare with";
  const SpikeGuard odd = guard_with(spec, {100, 3, 1, 5});  // 3, 1, 5: the first is forgotten
  EXPECT_FALSE(odd.is_spike(1, 6));
  EXPECT_TRUE(odd.is_spike(1, 6.001));
  const SpikeGuard even = guard_with({.factor = 2, .window = 4}, {8, 1, 2, 4});  // 3
  EXPECT_FALSE(even.is_spike(1, 6));
  EXPECT_TRUE(even.is_spike(1, 6.001));
}

TEST(SpikeGuard, WhatIsNotFiniteIsOneFromTheStart) {
  const SpikeGuard guard(SpikeSpec{});
  EXPECT_TRUE(guard.is_spike(1, kInfinite));
  EXPECT_TRUE(guard.is_spike(1, -std::numeric_limits<double>::quiet_NaN()));
  EXPECT_TRUE(guard.is_spike(kInfinite, 1));
  EXPECT_FALSE(guard.is_spike(1, 1e9));
}

TEST(SpikeGuard, SkippedStepsDoNotMoveTheMedianAndEndAfterSomeInARow) {
  SpikeGuard guard = guard_with({.factor = 2, .window = 2, .most_in_a_row = 2}, {1, 1});
  guard.step_ended(50, true);
  EXPECT_TRUE(guard.may_skip());
  guard.step_ended(kInfinite, true);
  EXPECT_FALSE(guard.may_skip());
  EXPECT_EQ(guard.state(), (SpikeState{.skipped_steps = 2, .skipped_in_row = 2, .norms = {1, 1}}));
  guard.step_ended(1.5, false);
  EXPECT_TRUE(guard.may_skip());
  EXPECT_EQ(guard.state(), (SpikeState{.skipped_steps = 2, .skipped_in_row = 0, .norms = {1, 1.5}}));
}

TEST(SpikeGuard, GoesOnWithAnotherWindowFromTheNewestNorms) {
  SpikeGuard guard({.factor = 2, .window = 2});
  guard.continue_from({.skipped_steps = 7, .norms = {9, 1, 3}});
  EXPECT_EQ(guard.state(), (SpikeState{.skipped_steps = 7, .norms = {1, 3}}));
}

}  // namespace
}  // namespace sailor
