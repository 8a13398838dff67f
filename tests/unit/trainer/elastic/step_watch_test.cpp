#include "trainer/elastic/step_watch.h"

#include <gtest/gtest.h>

namespace sailor {
namespace {

constexpr double kLease_s = 5;

TEST(StepWatch, AStepMayTakeLongWhileNoneIsKnown) {
  EXPECT_GE(StepWatch().stall_s(kLease_s), 60);
}

TEST(StepWatch, ARankHangsWhenItsStepTakesManyTimesTheLongestOne) {
  StepWatch steps;
  steps.reported(1, 4);
  steps.reported(2, 2);
  EXPECT_EQ(steps.longest_step_s(), 4);
  EXPECT_GE(steps.stall_s(kLease_s), 5 * 4);
  EXPECT_LT(steps.stall_s(kLease_s), 20 * 4);
}

TEST(StepWatch, NobodyHangsBeforeItsLeaseWouldHaveEnded) {
  StepWatch steps;
  steps.reported(1, 0.001);
  EXPECT_GE(steps.stall_s(kLease_s), kLease_s);
}

TEST(StepWatch, AGenerationIsMeasuredByItsOwnPlan) {
  StepWatch steps;
  steps.reported(7, 100);
  steps.begin_generation(0.5);
  EXPECT_EQ(steps.longest_step_s(), 0.5);
  steps.begin_generation(0);
  EXPECT_EQ(steps.longest_step_s(), 0.5) << "nothing is known of the new plan";
}

TEST(StepWatch, AllStopAfterAStepThatNobodyHasDone) {
  StepWatch steps;
  steps.reported(7, 1);
  steps.reported(6, 1);  // by a rank that is behind
  EXPECT_EQ(steps.steps_done(), 7);
  EXPECT_GT(steps.reachable_by_all(), 7 + 1);
  steps.running(3);  // from an older state
  EXPECT_EQ(steps.steps_done(), 3);
}

TEST(StepWatch, StepsThatAreDoneAgainAreNoProgress) {
  StepWatch steps;
  EXPECT_TRUE(steps.reported(7, 1));
  steps.running(3);
  EXPECT_FALSE(steps.reported(4, 1));
  EXPECT_FALSE(steps.reported(7, 1));
  EXPECT_TRUE(steps.reported(8, 1));
  EXPECT_EQ(steps.furthest(), 8);
}

}  // namespace
}  // namespace sailor
