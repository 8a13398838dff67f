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

void expect_spans(const Timeline& t, int stage, const std::string& order,
                  const std::vector<std::pair<double, double>>& spans) {
  std::string got;
  size_t at = 0;
  for (const TimelineEvent& e : t.events) {
    if (e.stage != stage) continue;
    got += (e.kind == Kind::forward ? "F" : "B") + std::to_string(e.microbatch) + " ";
    ASSERT_LT(at, spans.size());
    EXPECT_EQ(e.start_s, spans[at].first) << got << "of stage " << stage;
    EXPECT_EQ(e.end_s, spans[at].second) << got << "of stage " << stage;
    ++at;
  }
  EXPECT_EQ(got, order) << "stage " << stage;
}

const std::vector<StageTimes> kUnequal = {{1, 2, 0.25, 0}, {2, 3, 0.5, 0.25}, {1, 2, 0, 0.75}};

// Unequal stages. Stage 0 sends in 0.25, stage 1 in 0.5 on and 0.25 back, stage 2 in 0.75 back.
//   stage 0: F0 0-1 (there 1.25), F1 1-2 (2.25), F2 2-3 (3.25)
//   stage 1: F0 1.25-3.25 (3.75), F1 3.25-5.25 (5.75)
//   stage 2: F0 3.75-4.75, B0 4.75-6.75 (7.5), F1 6.75-7.75, B1 7.75-9.75 (10.5)
//   stage 1: B0 7.5-10.5 (10.75), F2 10.5-12.5 (13), B1 12.5-15.5 (15.75)
//   stage 0: B0 10.75-12.75, F3 12.75-13.75 (14), B1 15.75-17.75
//   stage 2: F2 13-14, B2 14-16 (16.75)
//   stage 1: F3 15.5-17.5 (18), B2 17.5-20.5 (20.75)
//   stage 2: F3 18-19, B3 19-21 (21.75);  stage 1: B3 21.75-24.75 (25);  stage 0: B2 20.75-22.75, B3 25-27
TEST(Timeline, UnequalStagesByHand) {
  const Timeline t = one_f_one_b(kUnequal, 4, true);
  expect_spans(
      t, 0, "F0 F1 F2 B0 F3 B1 B2 B3 ",
      {{0, 1}, {1, 2}, {2, 3}, {10.75, 12.75}, {12.75, 13.75}, {15.75, 17.75}, {20.75, 22.75}, {25, 27}});
  expect_spans(t, 1, "F0 F1 B0 F2 B1 F3 B2 B3 ",
               {{1.25, 3.25},
                {3.25, 5.25},
                {7.5, 10.5},
                {10.5, 12.5},
                {12.5, 15.5},
                {15.5, 17.5},
                {17.5, 20.5},
                {21.75, 24.75}});
  expect_spans(
      t, 2, "F0 B0 F1 B1 F2 B2 F3 B3 ",
      {{3.75, 4.75}, {4.75, 6.75}, {6.75, 7.75}, {7.75, 9.75}, {13, 14}, {14, 16}, {18, 19}, {19, 21}});
  EXPECT_EQ(t.makespan_s, 27);
  EXPECT_EQ(t.stage_end_s, (std::vector<double>{27, 24.75, 21}));
  EXPECT_EQ(t.last_backward_s, (std::vector<double>{25, 21.75, 19}));
  EXPECT_EQ(t.chunk_end_s, t.stage_end_s);
  ASSERT_EQ(t.transfers.size(), 16u);
  EXPECT_EQ(t.transfers[0].kind, Kind::send_forward);
  EXPECT_EQ(t.transfers[0].start_s, 1);
  EXPECT_EQ(t.transfers[0].end_s, 1.25);
}

// The same where both ends of a transfer wait for it ("at" = when both are there; neighbours exchange at
// once).
//   stage 0: F0 0-1, sent 1-1.25;  stage 1: F0 1.25-3.25, sent 3.25-3.75;  stage 2: F0 3.75-4.75,
//   B0 4.75-6.75 stage 0: F1 1.25-2.25, taken by stage 1 at 3.75: both go on at 4;  stage 0: F2 4-5;  stage
//   1: F1 4-6 stages 1, 2 exchange F1, B0 at 6.75: until 7.5 (0.5 and 0.75);  stage 2: F1 7.5-8.5,
//   B1 8.5-10.5 stage 1: B0 7.5-10.5;  0, 1 exchange F2, B0 at 10.5: until 10.75;  stage 0: B0 10.75-12.75,
//   F3 12.75-13.75 stage 1: F2 10.75-12.75;  1, 2 exchange F2, B1 at 12.75: until 13.5;  stage 2:
//   F2 13.5-14.5, B2 14.5-16.5 stage 1: B1 13.5-16.5;  0, 1 exchange F3, B1 at 16.5: until 16.75;  stage 0:
//   B1 16.75-18.75 stage 1: F3 16.75-18.75;  1, 2 exchange F3, B2 at 18.75: until 19.5;  stage 2:
//   F3 19.5-20.5, B3 20.5-22.5 stage 1: B2 19.5-22.5, sent 22.5-22.75, then takes B3 22.75-23.5 and stage 2
//   is done;  stage 0: B2 22.75-24.75 stage 1: B3 23.5-26.5, sent 26.5-26.75;  stage 0: B3 26.75-28.75
TEST(Timeline, UnequalStagesWithBlockingSendsByHand) {
  PipelineSchedule schedule;
  schedule.p2p = P2p::blocking;
  const Timeline t = pipeline_timeline(schedule, kUnequal, 4, {}, true);
  expect_spans(t, 0, "F0 F1 F2 B0 F3 B1 B2 B3 ",
               {{0, 1},
                {1.25, 2.25},
                {4, 5},
                {10.75, 12.75},
                {12.75, 13.75},
                {16.75, 18.75},
                {22.75, 24.75},
                {26.75, 28.75}});
  expect_spans(t, 1, "F0 F1 B0 F2 B1 F3 B2 B3 ",
               {{1.25, 3.25},
                {4, 6},
                {7.5, 10.5},
                {10.75, 12.75},
                {13.5, 16.5},
                {16.75, 18.75},
                {19.5, 22.5},
                {23.5, 26.5}});
  expect_spans(t, 2, "F0 B0 F1 B1 F2 B2 F3 B3 ",
               {{3.75, 4.75},
                {4.75, 6.75},
                {7.5, 8.5},
                {8.5, 10.5},
                {13.5, 14.5},
                {14.5, 16.5},
                {19.5, 20.5},
                {20.5, 22.5}});
  EXPECT_EQ(t.makespan_s, 28.75);
  EXPECT_EQ(t.stage_end_s, (std::vector<double>{28.75, 26.75, 23.5}));
  EXPECT_EQ(t.chunk_end_s, (std::vector<double>{28.75, 26.5, 22.5}));
}

// The last microbatch holds fewer sequences: only its own operations are shorter.
TEST(Timeline, TheLastMicrobatchMayBeSmaller) {
  const std::vector<StageTimes> stages = {{2, 4, 0, 0}}, last = {{1, 3, 0, 0}};
  const Timeline t = pipeline_timeline({}, stages, 3, last);
  EXPECT_EQ(t.makespan_s, 16);
  EXPECT_EQ(t.stage_busy_s[0], 16);
  EXPECT_EQ(t.last_backward_s[0], 13);
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
