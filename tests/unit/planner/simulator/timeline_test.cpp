#include "planner/simulator/timeline.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <stdexcept>

namespace sailor {
namespace {

using Kind = TimelineEvent::Kind;

// Three stages, four microbatches, forward 1 s, backward 2 s, every message 0.5 s: worked out on paper.
TEST(Timeline, ThreeStagesFourMicrobatchesByHand) {
  const std::vector<StageTimes> stages(3, {1.0, 2.0, 0.5, 0.5});
  const Timeline t = one_f_one_b(stages, 4, true);
  const std::vector<TimelineEvent> expected = {
      {Kind::forward, 0, 0, 0, 1},        {Kind::forward, 0, 1, 1, 2},
      {Kind::forward, 0, 2, 2, 3},        {Kind::backward, 0, 0, 9, 11},
      {Kind::forward, 0, 3, 11, 12},      {Kind::backward, 0, 1, 12, 14},
      {Kind::backward, 0, 2, 16, 18},     {Kind::backward, 0, 3, 20, 22},
      {Kind::forward, 1, 0, 1.5, 2.5},    {Kind::forward, 1, 1, 2.5, 3.5},
      {Kind::backward, 1, 0, 6.5, 8.5},   {Kind::forward, 1, 2, 8.5, 9.5},
      {Kind::backward, 1, 1, 9.5, 11.5},  {Kind::forward, 1, 3, 12.5, 13.5},
      {Kind::backward, 1, 2, 13.5, 15.5}, {Kind::backward, 1, 3, 17.5, 19.5},
      {Kind::forward, 2, 0, 3, 4},        {Kind::backward, 2, 0, 4, 6},
      {Kind::forward, 2, 1, 6, 7},        {Kind::backward, 2, 1, 7, 9},
      {Kind::forward, 2, 2, 10, 11},      {Kind::backward, 2, 2, 11, 13},
      {Kind::forward, 2, 3, 14, 15},      {Kind::backward, 2, 3, 15, 17}};
  ASSERT_EQ(t.events.size(), expected.size());
  for (size_t e = 0; e < expected.size(); ++e) {
    EXPECT_EQ(t.events[e].kind, expected[e].kind) << "event " << e;
    EXPECT_EQ(t.events[e].stage, expected[e].stage) << "event " << e;
    EXPECT_EQ(t.events[e].microbatch, expected[e].microbatch) << "event " << e;
    EXPECT_DOUBLE_EQ(t.events[e].start_s, expected[e].start_s) << "event " << e;
    EXPECT_DOUBLE_EQ(t.events[e].end_s, expected[e].end_s) << "event " << e;
  }
  EXPECT_DOUBLE_EQ(t.makespan_s, 22);
  EXPECT_EQ(t.stage_end_s, (std::vector<double>{22, 19.5, 17}));
  EXPECT_EQ(t.stage_busy_s, (std::vector<double>{12, 12, 12}));
}

TEST(Timeline, EqualStagesWithFreeMessagesTakeMicrobatchesPlusStagesMinusOneRounds) {
  for (int P : {1, 2, 5, 9})
    for (int M : {1, 2, 7, 30}) {
      const std::vector<StageTimes> stages(P, {1.0, 2.0, 0, 0});
      EXPECT_DOUBLE_EQ(one_f_one_b(stages, M).makespan_s, 3.0 * (M + P - 1))
          << P << " stages, " << M << " microbatches";
    }
}

TEST(Timeline, SlowestStageSetsTheSteadyState) {
  const std::vector<StageTimes> stages = {{1, 1, 0, 0}, {3, 5, 0, 0}, {1, 1, 0, 0}};
  const double step = one_f_one_b(stages, 101).makespan_s - one_f_one_b(stages, 100).makespan_s;
  EXPECT_DOUBLE_EQ(step, 8);
}

TEST(Timeline, OneSlowLinkCarriesOneMessageAtATime) {
  const std::vector<StageTimes> stages = {{0.1, 0.1, 4, 0}, {0.1, 0.1, 0, 0.1}};
  const double step = one_f_one_b(stages, 101).makespan_s - one_f_one_b(stages, 100).makespan_s;
  EXPECT_NEAR(step, 4, 1e-9);
}

TEST(Timeline, NeverHoldsMoreActivationsThanStagesBehind) {
  std::mt19937 random(5);
  for (int round = 0; round < 50; ++round) {
    const int P = 1 + static_cast<int>(random() % 6), M = 1 + static_cast<int>(random() % 12);
    std::vector<StageTimes> stages(P);
    for (auto& s : stages)
      s = {1.0 + random() % 5, 1.0 + random() % 5, 0.1 * (random() % 5), 0.1 * (random() % 5)};
    const Timeline t = one_f_one_b(stages, M, true);
    std::vector<int> held(P, 0), most(P, 0);
    for (const TimelineEvent& e : t.events) {
      held[e.stage] += e.kind == Kind::forward ? 1 : -1;
      most[e.stage] = std::max(most[e.stage], held[e.stage]);
    }
    for (int i = 0; i < P; ++i)
      EXPECT_EQ(most[i], std::min(P - i, M)) << "stage " << i << " of " << P << ", " << M;
  }
}

TEST(Timeline, FasterComputeOrLinksNeverTakeLonger) {
  std::mt19937 random(11);
  const auto draw = [&] { return static_cast<double>(random() % 1000) / 100; };
  for (int round = 0; round < 300; ++round) {
    std::vector<StageTimes> stages(1 + random() % 6);
    for (auto& s : stages) s = {draw(), draw(), draw(), draw()};
    const int M = 1 + static_cast<int>(random() % 20);
    const double before = one_f_one_b(stages, M).makespan_s;
    StageTimes& s = stages[random() % stages.size()];
    double* fields[] = {&s.forward_s, &s.backward_s, &s.send_forward_s, &s.send_backward_s};
    *fields[random() % 4] *= 0.7;
    EXPECT_LE(one_f_one_b(stages, M).makespan_s, before + 1e-9) << "round " << round;
  }
}

TEST(Timeline, BadDurationsAreRefusedByStage) {
  EXPECT_THROW(one_f_one_b({}, 1), std::invalid_argument);
  std::vector<StageTimes> stages(2);
  EXPECT_THROW(one_f_one_b(stages, 0), std::invalid_argument);
  stages[1].backward_s = -1;
  try {
    one_f_one_b(stages, 1);
    FAIL() << "a negative duration was accepted";
  } catch (const std::invalid_argument& e) {
    EXPECT_NE(std::string(e.what()).find("stage 1"), std::string::npos) << e.what();
  }
  stages[1].backward_s = std::nan("");
  EXPECT_THROW(one_f_one_b(stages, 1), std::invalid_argument);
}

TEST(Timeline, BeyondTheExactRangeTheSteadyRateContinues) {
  const std::vector<StageTimes> stages = {
      {0.01, 0.02, 0.003, 0}, {0.015, 0.025, 0.001, 0.003}, {0.012, 0.02, 0, 0.001}};
  const int many = 3 * kExactMicrobatches + 17;
  const Timeline exact = one_f_one_b(stages, many, /*with_events=*/true);
  const Timeline continued = one_f_one_b(stages, many);
  EXPECT_NEAR(continued.makespan_s, exact.makespan_s, 0.04);  // one microbatch of the slowest stage
  for (size_t i = 0; i < stages.size(); ++i) {
    EXPECT_NEAR(continued.stage_end_s[i], exact.stage_end_s[i], 0.04);
    EXPECT_NEAR(continued.stage_busy_s[i], exact.stage_busy_s[i], 1e-6);
  }
  EXPECT_GT(one_f_one_b(stages, 1'000'000'000).makespan_s, 3.9e7);
}

}  // namespace
}  // namespace sailor
