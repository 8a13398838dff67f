#include "planner/simulator/microbatch_rounds.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/unit/planner/instance.h"

namespace sailor::native {
namespace {

// Exchanges overlap with everything else, as far as they can.
FrameworkStyle overlapped() {
  FrameworkStyle style;
  style.gradient_sync = FrameworkStyle::Sync::overlapped;
  style.overlap = 1;
  return style;
}

RoundDelays delays_of(const FrameworkStyle& style, double rounds, const LayerRound& round) {
  RoundTimes times;
  times.layers.assign(2, round);
  times.processor_s = 0.5;
  return round_delays(times, std::vector<LayerWork>(2, {1, 2}), rounds, style);
}

TEST(MicrobatchRounds, OtherFrameworksGatherEveryLayerForEveryPass) {
  FrameworkStyle style = overlapped();
  style.zero = Zero::parameters;
  EXPECT_FALSE(has_lockstep_rounds(style));
  EXPECT_NEAR(delays_of(style, 1, {5, 1}).forward_s, 10 - 2, 1e-9);
  EXPECT_NEAR(delays_of(style, 1, {5, 1}).backward_s, 12 - 4 + 0.5, 1e-9);
  EXPECT_NEAR(delays_of(style, 2, {5, 1}).backward_s, 24 - 4 + 1, 1e-9) << "rounds of others";
  style.overlap = 0.75;
  EXPECT_NEAR(delays_of(style, 1, {0.1, 0.1}).forward_s, 0.05, 1e-9) << "a part cannot overlap";
  style.gradient_sync = FrameworkStyle::Sync::after_backward;
  EXPECT_NEAR(delays_of(style, 1, {5, 1}).forward_s, 10, 1e-9);
  style.zero = Zero::none;
  EXPECT_FALSE(has_lockstep_rounds(style));
}

TEST(MicrobatchRounds, WhatTwoLayersShareIsNotExchanged) {
  test::Instance in = test::empty_instance(4, 8);
  in.add_type("a", 0.01, int64_t{1} << 40, 1);
  in.add_node("n", "a", 2);
  std::vector<LayerSizes>& sizes = in.profiles.sizes.by_shape.at({1});
  sizes.front().parameters = 400;
  sizes.back().parameters = 300;
  sizes.back().tied_parameters = 300;
  const PlanningContext context = in.context();
  StageKinds kinds(context);
  const int kind = kinds.number("a", "z1", {1});
  const auto rounds_of = [&](int first, int end) {
    RoundTimes times;
    times.layers.assign(static_cast<size_t>(end - first), {8, 4});
    leave_out_tied({kind, first, end}, kinds, times);
    EXPECT_DOUBLE_EQ(times.tied_s, first == 0 ? 3 : 4);
    return times.layers;
  };
  EXPECT_DOUBLE_EQ(rounds_of(0, 3).front().gather_s, 2);  // a quarter
  EXPECT_DOUBLE_EQ(rounds_of(0, 3).front().reduce_s, 1);
  EXPECT_DOUBLE_EQ(rounds_of(0, 3).back().gather_s, 8);
  EXPECT_DOUBLE_EQ(rounds_of(3, 6).front().gather_s, 8);
  EXPECT_DOUBLE_EQ(rounds_of(3, 6).back().reduce_s, 0);
}

TEST(MicrobatchRounds, GradientsOfAllRanksOfATpGroupAreSummedOverIt) {
  test::Instance in = test::empty_instance(4, 8);
  in.add_type("a", 0.01, int64_t{1} << 40, 1);
  in.add_node("n", "a", 2);
  in.set_network(1e-3, 1e9);
  // Of 1000 elements 200 are on both ranks.
  in.profiles.sizes.by_shape.at({1})[2].parameters = 1000;
  in.profiles.sizes.by_shape.at({2})[2].parameters = 600;
  const PlanningContext context = in.context();
  StageKinds kinds(context);
  EXPECT_EQ(kinds.token_sum_s(kinds.number("a", "z1", {1}), 2), 0);
  const double sum_s = kinds.token_sum_s(kinds.number("a", "z1", {2}, true), 2);
  EXPECT_GE(sum_s, 2e-3);
  EXPECT_LE(sum_s, 3e-3);
}

}  // namespace
}  // namespace sailor::native
