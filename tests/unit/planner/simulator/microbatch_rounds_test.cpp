#include "planner/simulator/microbatch_rounds.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/unit/planner/instance.h"

namespace sailor::native {
namespace {

// Exchanges overlap with everything else, as far as they can.
FrameworkStyle ours() {
  FrameworkStyle style;
  style.gradient_sync = FrameworkStyle::Sync::overlapped;
  style.overlap = 1;
  return style;
}

RoundStage stage_of(int layers, int microbatches, const LayerRound& round, const LayerWork& work) {
  RoundStage stage;
  stage.times.layers.assign(static_cast<size_t>(layers), round);
  stage.layers.assign(static_cast<size_t>(layers), work);
  stage.microbatches = microbatches;
  return stage;
}

double total_s(const RoundStage& stage, const RoundDelays& delays) {
  double sum_s = delays.forward_s + delays.backward_s;
  for (const LayerWork& layer : stage.layers) sum_s += layer.forward_s + layer.backward_s;
  return stage.microbatches * sum_s;
}

TEST(MicrobatchRounds, ReductionsLastUntilTheNextBackwardEnds) {
  const auto backward_delay_s = [](double reduce_s) {
    return round_delays({stage_of(4, 10, {0, reduce_s}, {1, 2})}, ours()).front().backward_s;
  };
  EXPECT_EQ(backward_delay_s(0), 0);
  EXPECT_EQ(backward_delay_s(2), 0);
  // Three of four wait for the one before. That of the first layer runs through the next forward.
  EXPECT_NEAR(backward_delay_s(3), 3, 1e-9);
  EXPECT_NEAR(backward_delay_s(6), 12, 1e-9);
  // Now it does not, except after the last microbatch.
  EXPECT_NEAR(backward_delay_s(7), 15 + 0.9, 1e-9);
}

TEST(MicrobatchRounds, TwoLayersAreGatheredOnceInAnIteration) {
  for (const int layers : {1, 2, 3, 6}) {
    const RoundStage stage = stage_of(layers, 10, {5, 0}, {1, 2});
    const RoundDelays delays = round_delays({stage}, ours()).front();
    // At first all layers; later all but the two that the pass before ended with.
    const double first_s = 5 + (layers - 1) * (5 - 1.0), later_s = std::max(0, layers - 2) * (5 - 1.0);
    EXPECT_NEAR(10 * delays.forward_s, first_s + 9 * later_s, 1e-9) << layers;
    EXPECT_NEAR(delays.backward_s, std::max(0, layers - 2) * (5 - 2.0), 1e-9) << layers;
  }
}

TEST(MicrobatchRounds, ASlowerReplicaDelaysTheOthers) {
  const std::vector<RoundStage> stages = {stage_of(4, 10, {0, 0.1}, {1, 2}),
                                          stage_of(4, 10, {0, 0.1}, {0.5, 1})};
  const std::vector<RoundDelays> delays = round_delays(stages, ours());
  EXPECT_NEAR(delays[0].backward_s, 0, 1e-9);
  EXPECT_NEAR(total_s(stages[1], delays[1]), total_s(stages[0], delays[0]), 4);  // less than a microbatch
  EXPECT_GT(total_s(stages[1], delays[1]), 0.9 * total_s(stages[0], delays[0]));
}

TEST(MicrobatchRounds, AReplicaWithFewerMicrobatchesHasThemInEvenlySpreadRounds) {
  // Twice as slow with half of the microbatches: it is as fast alone. In every second round the fast one
  // waits for it, and in the others it does nothing.
  const std::vector<RoundStage> stages = {stage_of(4, 10, {0, 0.1}, {1, 2}),
                                          stage_of(4, 20, {0, 0.1}, {0.5, 1})};
  const std::vector<RoundDelays> delays = round_delays(stages, ours());
  EXPECT_NEAR(total_s(stages[1], delays[1]) / total_s(stages[0], delays[0]), 1, 0.05);
  EXPECT_GT(total_s(stages[0], delays[0]), 10 * 12.0);
  EXPECT_LE(total_s(stages[0], delays[0]), 10 * 18.5);
}

TEST(MicrobatchRounds, OfManyMicrobatchesTheMeanIsThatOfSome) {
  const auto delays_of = [](int microbatches) {
    return round_delays({stage_of(5, microbatches, {3, 3}, {1, 2})}, ours()).front();
  };
  EXPECT_NEAR(delays_of(1000).backward_s, delays_of(24).backward_s, 0.02 * delays_of(24).backward_s);
  EXPECT_NEAR(delays_of(1000).forward_s, delays_of(24).forward_s, 0.02 * delays_of(24).forward_s);
}

TEST(MicrobatchRounds, SumsOverTokensAreInTheBackward) {
  const std::vector<RoundStage> stages = {stage_of(4, 10, {0, 0}, {1, 2, 0.25})};
  EXPECT_NEAR(round_delays(stages, ours()).front().backward_s, 1, 1e-9);
}

TEST(MicrobatchRounds, OtherFrameworksGatherEveryLayerForEveryPass) {
  FrameworkStyle style = ours();
  style.zero = Zero::parameters;
  const std::vector<RoundStage> stages = {stage_of(2, 10, {5, 1}, {1, 2})};
  EXPECT_NEAR(round_delays(stages, style).front().forward_s, 10 - 2, 1e-9);
  EXPECT_NEAR(round_delays(stages, style).front().backward_s, 12 - 4, 1e-9);
  style.gradient_sync = FrameworkStyle::Sync::after_backward;
  EXPECT_NEAR(round_delays(stages, style).front().forward_s, 10, 1e-9);
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

TEST(MicrobatchRounds, APartCannotOverlap) {
  FrameworkStyle style = ours();
  style.overlap = 0.75;
  style.sums = FrameworkStyle::Sums::rings;
  const RoundDelays delays = round_delays({stage_of(4, 10, {0, 0.4}, {1, 2})}, style).front();
  EXPECT_NEAR(delays.backward_s, 0.25 * 4 * 0.4, 1e-9);
}

}  // namespace
}  // namespace sailor::native
