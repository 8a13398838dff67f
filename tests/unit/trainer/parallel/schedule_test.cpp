#include "trainer/parallel/schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "planner/simulator/schedule.h"

namespace sailor {
namespace {

using Kind = ScheduleStep::Kind;

// Calls f(chunks, groups, microbatches) for every schedule of up to these sizes that exists.
template <class Function>
void for_each_schedule(Function&& f) {
  for (int chunks = 1; chunks <= 4; ++chunks) {
    for (int groups = chunks > 1 ? 2 : 1; groups <= 6; ++groups) {
      for (int microbatches = 1; microbatches <= 18; ++microbatches) {
        if (chunks == 1 || microbatches % groups == 0) f(chunks, groups, microbatches);
      }
    }
  }
}

TEST(Schedule, EveryMicrobatchOnceForwardThenBackwardAndNeverMoreInFlightThanTheBound) {
  for_each_schedule([](int chunks, int groups, int microbatches) {
    for (int group = 0; group < groups; ++group) {
      int held = 0, most = 0;
      std::set<std::pair<int, int>> forward, backward;  // (chunk, microbatch)
      for (const ScheduleStep& step : schedule_steps(chunks, group, groups, microbatches)) {
        if (step.kind == Kind::forward) {
          ASSERT_TRUE(forward.insert({step.chunk, step.microbatch}).second);
          most = std::max(most, ++held);
        } else {
          ASSERT_TRUE(forward.count({step.chunk, step.microbatch})) << "a backward before its forward";
          ASSERT_TRUE(backward.insert({step.chunk, step.microbatch}).second);
          --held;
        }
      }
      ASSERT_EQ(backward.size(), static_cast<std::size_t>(chunks * microbatches));
      ASSERT_EQ(most, most_in_flight(chunks, group, groups, microbatches));
      if (chunks == 1) {
        ASSERT_EQ(most, std::min(groups - group, microbatches));
      }
    }
  });
}

TEST(Schedule, OneChunkGoesThroughItsMicrobatchesInOrder) {
  using Steps = std::vector<ScheduleStep>;
  EXPECT_EQ(schedule_steps(1, 0, 2, 3), (Steps{{Kind::forward, 0, 0},
                                               {Kind::forward, 0, 1},
                                               {Kind::backward, 0, 0},
                                               {Kind::forward, 0, 2},
                                               {Kind::backward, 0, 1},
                                               {Kind::backward, 0, 2}}));
  EXPECT_EQ(schedule_steps(1, 3, 4, 0), Steps{});
}

TEST(Schedule, IsWhatTheSimulatorTakesItFor) {
  for_each_schedule([](int chunks, int groups, int microbatches) {
    PipelineSchedule simulated;
    simulated.chunks = chunks;
    for (int group = 0; group < groups; ++group) {
      int forwards = 0, backwards = 0;
      for (const ScheduleStep& step : schedule_steps(chunks, group, groups, microbatches)) {
        const ScheduledChunk expected = step.kind == Kind::forward
                                            ? scheduled_forward(simulated, groups, forwards++)
                                            : scheduled_backward(simulated, groups, backwards++);
        ASSERT_EQ((ScheduledChunk{step.chunk, step.microbatch}), expected);
        if (step.kind == Kind::backward && backwards == 1) {
          ASSERT_EQ(forwards, std::min(warm_up_forwards(simulated, group, groups, microbatches) + 1,
                                       chunks * microbatches));
        }
      }
      ASSERT_EQ(most_in_flight(chunks, group, groups, microbatches),
                most_in_flight(simulated, group, groups, microbatches));
    }
  });
}

// Forwards and backwards stay in their order; the weights of every microbatch come once, in order, at least
// that many backwards after its own one unless there are no more.
TEST(Schedule, WeightsComeLaterThanTheirBackwards) {
  for (const int groups : {1, 3})
    for (const int microbatches : {1, 2, 7})
      for (int group = 0; group < groups; ++group)
        for (int delay = 0; delay <= 3; ++delay) {
          std::vector<ScheduleStep> others;
          int backwards = 0, weights = 0;
          for (const ScheduleStep& step : schedule_steps(1, group, groups, microbatches, delay)) {
            if (step.kind != Kind::weights) others.push_back(step);
            if (step.kind == Kind::backward) ++backwards;
            if (step.kind != Kind::weights) continue;
            EXPECT_EQ(step.microbatch, weights++);
            EXPECT_EQ(std::min(microbatches, step.microbatch + delay + 1), backwards);
          }
          EXPECT_EQ(weights, microbatches);
          EXPECT_EQ(others, schedule_steps(1, group, groups, microbatches));
        }
}

TEST(Schedule, MessagesBetweenTwoGroupsArriveInTheOrderInWhichTheyAreAskedFor) {
  for_each_schedule([](int chunks, int groups, int microbatches) {
    for (int lower = 0; lower < groups; ++lower) {
      const int upper = (lower + 1) % groups, next_chunk = upper == 0 ? 1 : 0;
      if (groups == 1 || (upper == 0 && chunks == 1)) continue;
      const auto order = [&](int group, Kind kind, int shift, int first, int end) {
        std::vector<std::pair<int, int>> list;
        for (const ScheduleStep& step : schedule_steps(chunks, group, groups, microbatches))
          if (step.kind == kind && step.chunk >= first && step.chunk < end)
            list.emplace_back(step.chunk + shift, step.microbatch);
        return list;
      };
      for (const Kind kind : {Kind::forward, Kind::backward})
        ASSERT_EQ(order(lower, kind, next_chunk, 0, chunks - next_chunk),
                  order(upper, kind, 0, next_chunk, chunks));
    }
  });
}

TEST(Schedule, GroupsWithBlockingReceivesAndEagerSendsAlwaysFinish) {
  // Executes all groups of a pipeline against each other: a step runs when what it needs has been sent.
  for_each_schedule([](int chunks, int groups, int microbatches) {
    std::vector<std::vector<ScheduleStep>> schedule;
    for (int g = 0; g < groups; ++g) schedule.push_back(schedule_steps(chunks, g, groups, microbatches));
    std::vector<std::size_t> at(static_cast<std::size_t>(groups), 0);
    std::set<std::pair<int, int>> forward_done, backward_done;  // (chunk x groups + group, microbatch)
    for (bool moved = true; moved;) {
      moved = false;
      for (int g = 0; g < groups; ++g) {
        auto& position = at[static_cast<std::size_t>(g)];
        if (position == schedule[static_cast<std::size_t>(g)].size()) continue;
        const ScheduleStep step = schedule[static_cast<std::size_t>(g)][position];
        const bool forward = step.kind == Kind::forward;
        const int place = step.chunk * groups + g;
        const bool ready =
            forward ? place == 0 || forward_done.count({place - 1, step.microbatch})
                    : place + 1 == chunks * groups || backward_done.count({place + 1, step.microbatch});
        if (!ready) continue;
        (forward ? forward_done : backward_done).insert({place, step.microbatch});
        ++position;
        moved = true;
      }
    }
    ASSERT_EQ(backward_done.size(), static_cast<std::size_t>(chunks * groups * microbatches));
  });
}

}  // namespace
}  // namespace sailor
