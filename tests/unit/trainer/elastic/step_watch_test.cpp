#include "trainer/elastic/step_watch.h"

#include <gtest/gtest.h>

namespace sailor {
namespace {

constexpr double kLease_s = 5;

constexpr double kLong_s = 1000;

TEST(StepWatch, AStepMayTakeLongWhileNoneIsKnown) {
  EXPECT_FALSE(StepWatch().stalls(60, kLong_s, kLease_s));
  EXPECT_TRUE(StepWatch().stalls(kLong_s, kLong_s, kLease_s));
}

TEST(StepWatch, ARankHangsWhenItsStepTakesManyTimesTheLongestOne) {
  StepWatch steps;
  steps.reported(1, 4);
  steps.reported(2, 2);
  EXPECT_EQ(steps.longest_step_s(), 4);
  EXPECT_FALSE(steps.stalls(5 * 4, kLong_s, kLease_s));
  EXPECT_TRUE(steps.stalls(20 * 4, kLong_s, kLease_s));
}

TEST(StepWatch, NobodyHangsBeforeItsLeaseWouldHaveEnded) {
  StepWatch steps;
  steps.reported(1, 0.001);
  EXPECT_FALSE(steps.stalls(0.99 * kLease_s, kLong_s, kLease_s));
}

TEST(StepWatch, WhatWasSaidInTheGenerationBeforeIsNoHang) {
  StepWatch steps;
  steps.reported(1, 0.1);
  EXPECT_FALSE(steps.stalls(kLong_s, 0.5, kLease_s));
}

TEST(StepWatch, AGenerationIsMeasuredByItsOwnPlan) {
  StepWatch steps;
  steps.reported(7, 100);
  steps.begin_generation(0.5);
  EXPECT_EQ(steps.longest_step_s(), 0.5);
  steps.begin_generation(0);
  EXPECT_EQ(steps.longest_step_s(), 0.5) << "nothing is known of the new plan";
}

TEST(StepWatch, TheMostAdvancedRankCounts) {
  StepWatch steps;
  steps.reported(7, 1);
  steps.reported(6, 1);  // by a rank that is behind
  EXPECT_EQ(steps.steps_done(), 7);
  steps.running(3);  // from an older state
  EXPECT_EQ(steps.steps_done(), 3);
}

TEST(StepWatch, AChangeIsInVainUntilTrainingIsFurtherThanEver) {
  StepWatch steps;
  steps.reported(7, 1);
  steps.changed();
  steps.running(3);
  steps.reported(4, 1);
  steps.reported(7, 1);
  steps.changed();
  EXPECT_EQ(steps.changes_in_vain(), 2);
  EXPECT_EQ(steps.furthest(), 7);
  steps.reported(8, 1);
  EXPECT_EQ(steps.changes_in_vain(), 0);
}

}  // namespace
}  // namespace sailor
