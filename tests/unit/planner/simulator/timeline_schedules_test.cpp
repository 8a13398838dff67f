// Every schedule and every way to send, against a naive second implementation and against what must hold.
#include <gtest/gtest.h>

#include <random>

#include "tests/unit/drawn.h"
#include "tests/unit/planner/simulator/timeline_reference.h"

namespace sailor {
namespace {

using test::Reference;
using test::reference_timeline;

struct ScheduleCase {
  PipelineSchedule schedule;
  std::vector<StageTimes> times, last;
  int stages = 1;
  int microbatches = 1;

  bool split() const {
    return std::any_of(times.begin(), times.end(),
                       [](const StageTimes& t) { return t.weight_delay != kWholeBackward; });
  }
  std::string text() const {
    return std::to_string(stages) + " stages, " + std::to_string(schedule.chunks) + " chunks, " +
           std::to_string(microbatches) + " microbatches, " + std::to_string(static_cast<int>(schedule.p2p)) +
           (schedule.forwards_first ? ", forwards first" : "") +
           (schedule.single_group_forwards_first ? ", one group forwards first" : "") +
           (last.empty() ? "" : ", smaller last") + (split() ? ", split" : "");
  }
};

class Draw {
 public:
  explicit Draw(unsigned seed) : random_(seed) {}

  int below(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }
  // Continuous, from a few values (ties), or nothing.
  double duration() {
    const int kind = below(8);
    if (kind == 0) return 0;
    if (kind < 3) return 0.25 * below(5);
    return std::uniform_real_distribution<double>(0, 3)(random_);
  }
  StageTimes stage() { return {duration(), duration(), duration() / 4, duration() / 4}; }

  ScheduleCase any() {
    ScheduleCase c;
    c.schedule.p2p = static_cast<P2p>(below(4));
    c.schedule.forwards_first = below(6) == 0;
    c.schedule.single_group_forwards_first = below(3) == 0;
    c.stages = 1 + below(7);
    c.microbatches = 1 + below(16);
    if (below(2) == 0) {
      c.schedule.chunks = 2 + below(3);
      c.stages = 2 + below(5);
      c.microbatches = c.stages * (1 + below(4));
      if (c.schedule.p2p == P2p::blocking_in_turn) c.schedule.p2p = P2p::blocking;
      if (c.schedule.p2p == P2p::asynchronous_in_turn) c.schedule.p2p = P2p::asynchronous;
    }
    for (int i = 0; i < c.stages * c.schedule.chunks; ++i) c.times.push_back(stage());
    if (below(3) == 0)
      for (size_t i = 0; i < static_cast<size_t>(c.stages); ++i) c.times[i].ready_s = 2 * duration();
    if (below(3) == 0)
      for (int i = 0; i < c.stages * c.schedule.chunks; ++i) c.last.push_back(stage());
    const bool can_split =
        c.schedule.chunks == 1 && !c.schedule.forwards_first && c.schedule.p2p == P2p::asynchronous;
    for (size_t i = 0; can_split && i < c.times.size(); ++i)
      if (below(2) == 0) split(c, i);
    return c;
  }

 private:
  void split(ScheduleCase& c, size_t i) {
    c.times[i].weight_delay = below(c.stages + 1);
    c.times[i].weight_s = c.times[i].backward_s * below(5) / 4;
    if (c.last.empty()) return;
    c.last[i].weight_delay = c.times[i].weight_delay;
    c.last[i].weight_s = c.last[i].backward_s * below(5) / 4;
  }

  std::mt19937 random_;
};

Timeline timeline(const ScheduleCase& c, bool with_events = false) {
  return pipeline_timeline(c.schedule, c.times, c.microbatches, c.last, with_events);
}

void expect_all_near(const std::vector<double>& got, const std::vector<double>& expected, double tolerance,
                     const std::string& what) {
  ASSERT_EQ(got.size(), expected.size()) << what;
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], expected[i], tolerance) << what << " " << i;
}

TEST(TimelineSchedules, EqualTheNaiveImplementation) {
  Draw draw(2024);
  for (int round = 0; round < test::drawn(2000); ++round) {
    const ScheduleCase c = draw.any();
    const Reference expected = reference_timeline(c.schedule, c.times, c.microbatches, c.last);
    const Timeline t = timeline(c);
    const double tolerance = 1e-12 * (1 + expected.makespan_s);
    const std::string what = "round " + std::to_string(round) + ": " + c.text();
    EXPECT_NEAR(t.makespan_s, expected.makespan_s, tolerance) << what;
    expect_all_near(t.stage_end_s, expected.stage_end_s, tolerance, what + ", end of stage");
    expect_all_near(t.last_backward_s, expected.last_backward_s, tolerance,
                    what + ", last backward of stage");
    expect_all_near(t.chunk_end_s, expected.chunk_end_s, tolerance, what + ", chunk");
    if (HasFailure()) return;
  }
}

TEST(TimelineSchedules, EventsEqualTheNaiveImplementation) {
  Draw draw(7);
  for (int round = 0; round < 500; ++round) {
    const ScheduleCase c = draw.any();
    const Reference expected = reference_timeline(c.schedule, c.times, c.microbatches, c.last);
    const Timeline t = timeline(c, true);
    const std::string what = "round " + std::to_string(round) + ": " + c.text();
    const auto splits = static_cast<size_t>(
        std::ranges::count_if(c.times, [](const StageTimes& t) { return t.weight_delay != kWholeBackward; }));
    ASSERT_EQ(t.events.size(), (2 * c.times.size() + splits) * static_cast<size_t>(c.microbatches)) << what;
    ASSERT_EQ(expected.end_s.size(), t.events.size()) << what;
    for (const TimelineEvent& e : t.events) {
      const int kind = e.kind == TimelineEvent::Kind::forward    ? 0
                       : e.kind == TimelineEvent::Kind::backward ? 1
                                                                 : 2;
      EXPECT_NEAR(e.end_s, expected.end_s.at({kind, e.stage, e.chunk, e.microbatch}), 1e-10) << what;
    }
    EXPECT_EQ(t.transfers.size(), 2u * (c.times.size() - 1) * c.microbatches) << what;
    for (size_t i = 1; i < t.transfers.size(); ++i)
      if (t.transfers[i].stage == t.transfers[i - 1].stage) {
        EXPECT_LE(t.transfers[i - 1].start_s, t.transfers[i].start_s) << what;
      }
    const Timeline without = timeline(c);
    EXPECT_DOUBLE_EQ(t.makespan_s, without.makespan_s) << what;
    if (HasFailure()) return;
  }
}

// Thousands of microbatches: skipping a repeated steady state gives the same times as simulating it.
TEST(TimelineSchedules, ManyMicrobatchesEqualTheNaiveImplementation) {
  Draw draw(99);
  for (int round = 0; round < test::drawn(16); ++round) {
    ScheduleCase c = draw.any();
    c.microbatches = c.stages * (100 + draw.below(400));
    const Reference expected = reference_timeline(c.schedule, c.times, c.microbatches, c.last);
    const Timeline t = timeline(c);
    const double tolerance = 1e-11 * (1 + expected.makespan_s);  // the reference adds thousands of doubles
    const std::string what = "round " + std::to_string(round) + ": " + c.text();
    EXPECT_NEAR(t.makespan_s, expected.makespan_s, tolerance) << what;
    expect_all_near(t.stage_end_s, expected.stage_end_s, tolerance, what + ", end of stage");
    expect_all_near(t.last_backward_s, expected.last_backward_s, tolerance,
                    what + ", last backward of stage");
    expect_all_near(t.chunk_end_s, expected.chunk_end_s, tolerance, what + ", chunk");
    if (HasFailure()) return;
  }
}

TEST(TimelineSchedules, TheFloorIsNeverAboveTheTimeline) {
  Draw draw(31);
  double least_part = 1;
  for (int round = 0; round < test::drawn(2000); ++round) {
    ScheduleCase c = draw.any();
    c.last.clear();
    const Timeline t = timeline(c);
    const TimelineFloor floor = timeline_floor(c.schedule, c.times, c.microbatches);
    ASSERT_LE(floor.makespan_s, t.makespan_s) << c.text();
    ASSERT_EQ(floor.chunk_end_s.size(), t.chunk_end_s.size());
    for (size_t i = 0; i < c.times.size(); ++i) ASSERT_LE(floor.chunk_end_s[i], t.chunk_end_s[i]) << c.text();
    // Asynchronous 1F1B is what searches prune by: the floor is close there.
    if (c.schedule.chunks == 1 && !c.schedule.forwards_first && c.schedule.p2p == P2p::asynchronous &&
        t.makespan_s > 0)
      least_part = std::min(least_part, floor.makespan_s / t.makespan_s);
  }
  EXPECT_GT(least_part, 0.6);
}

// A fixed order of operations is a longest path: shorter durations can only bring it forward.
TEST(TimelineSchedules, AnyShorterDurationNeverTakesLonger) {
  Draw draw(5);
  for (int round = 0; round < test::drawn(1000); ++round) {
    ScheduleCase c = draw.any();
    const Timeline before = timeline(c);
    std::vector<StageTimes>& times = !c.last.empty() && draw.below(2) == 0 ? c.last : c.times;
    StageTimes& s = times[static_cast<size_t>(draw.below(static_cast<int>(times.size())))];
    double* fields[] = {&s.forward_s, &s.backward_s, &s.send_forward_s, &s.send_backward_s, &s.ready_s};
    const int field = draw.below(5);
    const double factor = draw.below(3) == 0 ? 0.0 : 0.7;
    *fields[field] *= factor;
    if (field == 1) s.weight_s *= factor;
    const Timeline after = timeline(c);
    const double tolerance = 1e-13 * before.makespan_s;
    EXPECT_LE(after.makespan_s, before.makespan_s + tolerance) << "round " << round << ": " << c.text();
    for (size_t i = 0; i < after.stage_end_s.size(); ++i)
      EXPECT_LE(after.stage_end_s[i], before.stage_end_s[i] + tolerance) << "round " << round << ", " << i;
  }
}

TEST(TimelineSchedules, WaitingForSendsNeverHelps) {
  Draw draw(17);
  for (int round = 0; round < 1000; ++round) {
    ScheduleCase c = draw.any();
    for (std::vector<StageTimes>* times : {&c.times, &c.last})
      for (StageTimes& stage : *times) stage.weight_delay = kWholeBackward;
    c.schedule.p2p = P2p::asynchronous;
    const double asynchronous = timeline(c).makespan_s;
    c.schedule.p2p = P2p::blocking;
    const double blocking = timeline(c).makespan_s;
    EXPECT_LE(asynchronous, blocking * (1 + 1e-13)) << "round " << round << ": " << c.text();
    if (c.schedule.chunks > 1) continue;
    c.schedule.p2p = P2p::blocking_in_turn;
    const double blocking_in_turn = timeline(c).makespan_s;
    EXPECT_LE(blocking, blocking_in_turn * (1 + 1e-13)) << "round " << round << ": " << c.text();
    c.schedule.p2p = P2p::asynchronous_in_turn;
    const double asynchronous_in_turn = timeline(c).makespan_s;
    EXPECT_LE(asynchronous, asynchronous_in_turn * (1 + 1e-13)) << "round " << round << ": " << c.text();
    EXPECT_LE(asynchronous_in_turn, blocking_in_turn * (1 + 1e-13)) << "round " << round << ": " << c.text();
  }
}

// Qi et al., 2024: of equal stages, for whose gradients of weights takes as long as for those of inputs and
// as a forward, a third of the bubble of 1F1B is left if stage i delays by i.
TEST(TimelineSchedules, ASplitBackwardLeavesAThirdOfTheBubble) {
  for (const int P : {2, 4, 8})
    for (const int M : {P, 2 * P, 5 * P + 1}) {
      std::vector<StageTimes> times(static_cast<size_t>(P), {1, 2, 0, 0, 1});
      const auto bubble_s = [&] { return pipeline_timeline({}, times, M).makespan_s - 3 * M; };
      EXPECT_EQ(bubble_s(), 3 * (P - 1));
      for (int i = 1; i < P; ++i) times[static_cast<size_t>(i)].weight_delay = i;
      EXPECT_EQ(bubble_s(), P - 1) << P << " stages, " << M << " microbatches";
      for (int i = 1; i < P; ++i) times[static_cast<size_t>(i)].weight_delay = 0;
      EXPECT_EQ(bubble_s(), 2 * (P - 1));
    }
}

// Two stages, three microbatches, and a delay of one on the second:
//     stage 0: F0 F1 . B0 F2 . B1 . B2      F 1 s, B 2 s, not split
//     stage 1: . F0 B0 F1 B1 W0 F2 B2 W1 W2  F 1 s, B 1 s, W 1 s
TEST(TimelineSchedules, ASplitBackwardByHand) {
  std::vector<StageTimes> times(2, {1, 2, 0, 0, 1});
  times[1].weight_delay = 1;
  const Timeline t = pipeline_timeline({}, times, 3, {}, true);
  using enum TimelineEvent::Kind;
  const std::vector<std::tuple<TimelineEvent::Kind, int, int, double, double>> expected = {
      {forward, 0, 0, 0, 1},  {forward, 0, 1, 1, 2},   {backward, 0, 0, 3, 5}, {forward, 0, 2, 5, 6},
      {backward, 0, 1, 6, 8}, {backward, 0, 2, 8, 10}, {forward, 1, 0, 1, 2},  {backward, 1, 0, 2, 3},
      {forward, 1, 1, 3, 4},  {backward, 1, 1, 4, 5},  {weights, 1, 0, 5, 6},  {forward, 1, 2, 6, 7},
      {backward, 1, 2, 7, 8}, {weights, 1, 1, 8, 9},   {weights, 1, 2, 9, 10}};
  ASSERT_EQ(t.events.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    const TimelineEvent& e = t.events[i];
    EXPECT_EQ(std::tuple(e.kind, e.stage, e.microbatch, e.start_s, e.end_s), expected[i]) << i;
  }
  EXPECT_EQ(t.chunk_end_s, (std::vector<double>{10, 10}));
  EXPECT_EQ(t.last_backward_s, (std::vector<double>{8, 9}));
  EXPECT_EQ(t.stage_busy_s, (std::vector<double>{9, 9}));
}

// The second stage is not ready when the first activation arrives, after 1 s, but 2 s later.
TEST(TimelineSchedules, AStageBeginsWhenItIsReady) {
  std::vector<StageTimes> times(2, {1, 2, 0, 0});
  times[1].ready_s = 1;
  EXPECT_EQ(pipeline_timeline({}, times, 4).makespan_s, 1 + 4 * 3 + 2);
  times[1].ready_s = 3;
  const Timeline late = pipeline_timeline({}, times, 4);
  EXPECT_EQ(late.makespan_s, 3 + 4 * 3 + 2);
  EXPECT_EQ(late.stage_busy_s, (std::vector<double>{12, 12}));
}

// Narayanan et al., 2021: (P - 1) / (v M) of the ideal time is bubble.
TEST(TimelineSchedules, InterleavingDividesTheBubbleByTheChunks) {
  for (P2p p2p : {P2p::asynchronous, P2p::blocking})
    for (int P : {2, 4, 8})
      for (int v : {1, 2, 3, 4})
        for (int groups : {2, 3, 16}) {
          PipelineSchedule schedule;
          schedule.chunks = v;
          schedule.p2p = p2p;
          const int M = P * groups;
          const std::vector<StageTimes> times(static_cast<size_t>(P) * v, StageTimes{1.0, 2.0, 0, 0});
          EXPECT_DOUBLE_EQ(pipeline_timeline(schedule, times, M).makespan_s, 3.0 * (v * M + P - 1))
              << P << " stages, " << v << " chunks, " << M << " microbatches";
        }
}

// Two stages of two chunks each, two microbatches: forward 1 s, backward 2 s, messages take no time. a, b:
// forward of chunk 0, 1; A, B: their backward. Warm-up 2 (P-1-i) + (v-1) P: all 4 forwards on stage 0, 2 on
// stage 1; so stage 0 does a0 a1 b0 b1 B0 B1 A0 A1, stage 1 a0 a1 b0 B0 b1 B1 A0 A1.
//   stage 0: a0 0-1, a1 1-2, b0 2-3 (stage 1's a0 at 2), b1 3-4 (stage 1's a1 at 3)
//   stage 1: a0 1-2, a1 2-3, b0 3-4, B0 4-6, b1 6-7, B1 7-9
//   stage 0: B0 6-8, B1 9-11;   stage 1: A0 9-11 (needs stage 0's B0), A1 11-13 (stage 0's B1 at 11)
//   stage 0: A0 11-13, A1 13-15
TEST(TimelineSchedules, InterleavedByHand) {
  PipelineSchedule schedule;
  schedule.chunks = 2;
  const std::vector<StageTimes> times(4, StageTimes{1, 2, 0, 0});
  const Timeline t = pipeline_timeline(schedule, times, 2, {}, true);
  std::string order;
  std::vector<double> starts;
  for (const TimelineEvent& e : t.events) {
    const bool forward = e.kind == TimelineEvent::Kind::forward;
    order += std::string(e.stage == 1 && starts.size() == 8 ? "| " : "") +
             (forward ? (e.chunk == 0 ? "a" : "b") : (e.chunk == 0 ? "A" : "B")) +
             std::to_string(e.microbatch) + " ";
    starts.push_back(e.start_s);
  }
  EXPECT_EQ(order, "a0 a1 b0 b1 B0 B1 A0 A1 | a0 a1 b0 B0 b1 B1 A0 A1 ");
  EXPECT_EQ(starts, (std::vector<double>{0, 1, 2, 3, 6, 9, 11, 13, 1, 2, 3, 4, 6, 7, 9, 11}));
  EXPECT_EQ(t.stage_end_s, (std::vector<double>{15, 13}));
  EXPECT_EQ(t.chunk_end_s, (std::vector<double>{15, 13, 11, 9}));
  EXPECT_EQ(t.last_backward_s, (std::vector<double>{13, 11}));
}

TEST(TimelineSchedules, BadInputIsRefused) {
  PipelineSchedule schedule;
  const std::vector<StageTimes> four(4);
  schedule.chunks = 0;
  EXPECT_THROW(pipeline_timeline(schedule, four, 4), std::invalid_argument);
  schedule.chunks = 3;  // four durations for three chunks per stage
  EXPECT_THROW(pipeline_timeline(schedule, four, 4), std::invalid_argument);
  schedule.chunks = 4;  // one stage
  EXPECT_THROW(pipeline_timeline(schedule, four, 4), std::invalid_argument);
  schedule.chunks = 2;
  EXPECT_NO_THROW(pipeline_timeline(schedule, four, 4));
  EXPECT_THROW(pipeline_timeline(schedule, four, 3), std::invalid_argument);  // no multiple of 2
  for (P2p p2p : {P2p::blocking_in_turn, P2p::asynchronous_in_turn}) {
    schedule.p2p = p2p;
    EXPECT_THROW(pipeline_timeline(schedule, four, 4), std::invalid_argument);
  }
  schedule.p2p = P2p::blocking;
  EXPECT_THROW(pipeline_timeline(schedule, four, 4, std::vector<StageTimes>(3)), std::invalid_argument);
  std::vector<StageTimes> split = four;
  split[1].weight_delay = 0;
  EXPECT_NO_THROW(pipeline_timeline({}, split, 4));
  EXPECT_THROW(pipeline_timeline({.p2p = P2p::blocking}, split, 4), std::invalid_argument);
  EXPECT_THROW(pipeline_timeline({.chunks = 2}, split, 4), std::invalid_argument);
  split[1].weight_s = 1;  // of a backward that takes no time
  EXPECT_THROW(pipeline_timeline({}, split, 4), std::invalid_argument);
  std::vector<StageTimes> negative = four;
  negative[3].send_backward_s = -1;  // second chunk of stage 1
  try {
    pipeline_timeline(schedule, negative, 4);
    FAIL() << "a negative duration was accepted";
  } catch (const std::invalid_argument& e) {
    EXPECT_NE(std::string(e.what()).find("stage 1"), std::string::npos) << e.what();
  }
}

}  // namespace
}  // namespace sailor
