#include "planner/simulator/schedule.h"

#include <gtest/gtest.h>

#include <set>
#include <stdexcept>

#include "planner/simulator/timeline.h"

namespace sailor {
namespace {

PipelineSchedule with_chunks(int chunks) {
  PipelineSchedule schedule;
  schedule.chunks = chunks;
  return schedule;
}

TEST(Schedule, ClassicWarmUpIsWhatLiesBehind) {
  const PipelineSchedule classic;
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(warm_up_forwards(classic, i, 5, 20), 4 - i);
    EXPECT_EQ(most_in_flight(classic, i, 5, 20), 5 - i);
    EXPECT_EQ(most_in_flight(classic, i, 5, 2), std::min(5 - i, 2));
  }
}

// As in the paper's figure of the interleaved schedule: 4 stages, 2 chunks, 8 microbatches.
TEST(Schedule, InterleavedOrderAndWarmUp) {
  const PipelineSchedule two = with_chunks(2);
  const int forwards[] = {10, 8, 6, 4};
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(warm_up_forwards(two, i, 4, 8), forwards[i]);
    EXPECT_EQ(most_in_flight(two, i, 4, 8), forwards[i] + 1);
  }
  EXPECT_EQ(scheduled_forward(two, 4, 3), (ScheduledChunk{0, 3}));
  EXPECT_EQ(scheduled_forward(two, 4, 4), (ScheduledChunk{1, 0}));
  EXPECT_EQ(scheduled_forward(two, 4, 8), (ScheduledChunk{0, 4}));
  EXPECT_EQ(scheduled_forward(two, 4, 15), (ScheduledChunk{1, 7}));
  EXPECT_EQ(scheduled_backward(two, 4, 0), (ScheduledChunk{1, 0}));
  EXPECT_EQ(scheduled_backward(two, 4, 4), (ScheduledChunk{0, 0}));
}

TEST(Schedule, EveryChunkOfEveryMicrobatchOnce) {
  for (int v : {1, 2, 3})
    for (int P : {2, 5}) {
      std::set<std::pair<int, int>> forwards, backwards;
      const int M = 3 * P;
      for (int k = 0; k < v * M; ++k) {
        const ScheduledChunk f = scheduled_forward(with_chunks(v), P, k);
        const ScheduledChunk b = scheduled_backward(with_chunks(v), P, k);
        forwards.insert({f.chunk, f.microbatch});
        backwards.insert({b.chunk, b.microbatch});
        EXPECT_TRUE(f.microbatch >= 0 && f.microbatch < M && f.chunk < v);
      }
      EXPECT_EQ(forwards.size(), static_cast<size_t>(v * M));
      EXPECT_EQ(backwards, forwards);
    }
}

TEST(Schedule, ForwardsFirst) {
  PipelineSchedule schedule = with_chunks(2);
  schedule.single_group_forwards_first = true;
  EXPECT_EQ(warm_up_forwards(schedule, 3, 4, 4), 8);  // one group
  EXPECT_EQ(warm_up_forwards(schedule, 3, 4, 8), 4);
  schedule.forwards_first = true;
  EXPECT_EQ(warm_up_forwards(schedule, 3, 4, 8), 16);
}

// most_in_flight() is what the timeline holds.
TEST(Schedule, InFlightIsWhatTheTimelineHolds) {
  for (int v : {1, 2, 4})
    for (int P : {2, 3, 6})
      for (int groups : {1, 2, 5})
        for (bool forwards_first : {false, true}) {
          PipelineSchedule schedule = with_chunks(v);
          schedule.forwards_first = forwards_first;
          const std::vector<StageTimes> times(static_cast<size_t>(P) * v, StageTimes{1, 1.5, 0.1, 0.2});
          const Timeline t = pipeline_timeline(schedule, times, P * groups, {}, true);
          std::vector<int> held(P, 0), most(P, 0);
          for (const TimelineEvent& e : t.events) {
            held[e.stage] += e.kind == TimelineEvent::Kind::forward ? 1 : -1;
            most[e.stage] = std::max(most[e.stage], held[e.stage]);
          }
          for (int i = 0; i < P; ++i)
            EXPECT_EQ(most[i], most_in_flight(schedule, i, P, P * groups)) << P << " " << v << " " << groups;
        }
}

TEST(Schedule, WhatDoesNotExistIsRefused) {
  EXPECT_THROW(check_schedule({}, 0, 1), std::invalid_argument);
  EXPECT_THROW(check_schedule({}, 1, 0), std::invalid_argument);
  EXPECT_THROW(check_schedule(with_chunks(2), 4, 6), std::invalid_argument);
  EXPECT_THROW(check_schedule(with_chunks(2), 1, 6), std::invalid_argument);
  EXPECT_NO_THROW(check_schedule(with_chunks(2), 3, 6));
}

}  // namespace
}  // namespace sailor
