#include "trainer/pipeline/one_f_one_b.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace sailor {
namespace {

using Kind = ScheduleStep::Kind;

TEST(OneFOneB, EveryMicrobatchOnceForwardThenBackwardAndNeverMoreInFlightThanTheBound) {
  for (int stages = 1; stages <= 9; ++stages) {
    for (int stage = 0; stage < stages; ++stage) {
      for (int microbatches = 0; microbatches <= 20; ++microbatches) {
        int held = 0, most = 0, next_forward = 0, next_backward = 0;
        for (const ScheduleStep& step : one_f_one_b(stage, stages, microbatches)) {
          if (step.kind == Kind::forward) {
            ASSERT_EQ(step.microbatch, next_forward++);
            most = std::max(most, ++held);
          } else {
            ASSERT_EQ(step.microbatch, next_backward++);
            ASSERT_LT(step.microbatch, next_forward) << "a backward before its forward";
            --held;
          }
        }
        ASSERT_EQ(next_forward, microbatches);
        ASSERT_EQ(next_backward, microbatches);
        ASSERT_EQ(most, std::min(stages - stage, microbatches)) << "stage " << stage << " of " << stages;
        ASSERT_EQ(most, most_in_flight(stage, stages, microbatches));
      }
    }
  }
}

TEST(OneFOneB, StagesWithBlockingReceivesAndEagerSendsAlwaysFinish) {
  // Executes all stages of a pipeline against each other: a step runs when what it needs has been sent.
  for (int stages = 1; stages <= 6; ++stages) {
    for (int microbatches = 1; microbatches <= 12; ++microbatches) {
      std::vector<std::vector<ScheduleStep>> schedule;
      for (int s = 0; s < stages; ++s) schedule.push_back(one_f_one_b(s, stages, microbatches));
      std::vector<std::size_t> at(static_cast<std::size_t>(stages), 0);
      std::set<std::pair<int, int>> forward_done, backward_done;  // (stage, microbatch)
      for (bool moved = true; moved;) {
        moved = false;
        for (int s = 0; s < stages; ++s) {
          auto& position = at[static_cast<std::size_t>(s)];
          if (position == schedule[static_cast<std::size_t>(s)].size()) continue;
          const ScheduleStep step = schedule[static_cast<std::size_t>(s)][position];
          const bool forward = step.kind == Kind::forward;
          const bool ready = forward ? s == 0 || forward_done.count({s - 1, step.microbatch})
                                     : s == stages - 1 || backward_done.count({s + 1, step.microbatch});
          if (!ready) continue;
          (forward ? forward_done : backward_done).insert({s, step.microbatch});
          ++position;
          moved = true;
        }
      }
      ASSERT_EQ(backward_done.size(), static_cast<std::size_t>(stages * microbatches));
    }
  }
}

}  // namespace
}  // namespace sailor
