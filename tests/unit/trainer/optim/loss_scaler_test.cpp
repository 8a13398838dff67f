#include "trainer/optim/loss_scaler.h"

#include <gtest/gtest.h>

namespace sailor {
namespace {

void step(LossScaler& scaler, bool overflow, int times = 1) {
  for (int i = 0; i < times; ++i) scaler.step_ended(overflow);
}

TEST(LossScaler, DoublesAfterAWindowOfCleanSteps) {
  LossScaler scaler({.initial = 1024, .window = 3});
  step(scaler, false, 2);
  EXPECT_EQ(scaler.scale(), 1024);
  step(scaler, false);
  EXPECT_EQ(scaler.scale(), 2048);
  step(scaler, false, 2);
  step(scaler, true);  // the window begins again
  step(scaler, false, 2);
  EXPECT_EQ(scaler.scale(), 2048);
  step(scaler, false);
  EXPECT_EQ(scaler.scale(), 4096);
  EXPECT_EQ(scaler.state().skipped_steps, 1);
}

// As Megatron's: only growth brings tolerance back, a clean step does not.
TEST(LossScaler, ToleratesAllButTheLastOfTheHysteresis) {
  LossScaler scaler({.initial = 1024, .window = 3, .hysteresis = 3});
  step(scaler, true, 2);
  EXPECT_EQ(scaler.scale(), 1024);
  step(scaler, true);
  EXPECT_EQ(scaler.scale(), 512);
  step(scaler, false);
  step(scaler, true);
  EXPECT_EQ(scaler.scale(), 256);
  step(scaler, false, 3);
  EXPECT_EQ(scaler.scale(), 512);
  step(scaler, true, 2);
  EXPECT_EQ(scaler.scale(), 512);
  step(scaler, true);
  EXPECT_EQ(scaler.scale(), 256);

  LossScaler without({.initial = 1024, .hysteresis = 1});
  step(without, true);
  EXPECT_EQ(without.scale(), 512);
}

TEST(LossScaler, StaysAtTheMinimumUntilNoMoreMayBeSkipped) {
  LossScaler scaler({.initial = 8, .hysteresis = 1, .minimum = 4});
  step(scaler, true);
  EXPECT_EQ(scaler.scale(), 4);
  step(scaler, true, LossScaler::kMostSkippedAtMinimum - 1);
  EXPECT_EQ(scaler.scale(), 4);
  EXPECT_FALSE(scaler.may_skip());
  step(scaler, false);
  EXPECT_TRUE(scaler.may_skip());
  EXPECT_EQ(scaler.state().skipped_steps, LossScaler::kMostSkippedAtMinimum);
}

TEST(LossScaler, ContinuesFromAStateWithinItsOwnLimits) {
  LossScaler before({.initial = 1 << 20, .window = 5, .hysteresis = 4});
  step(before, true, 2);
  step(before, false, 3);
  LossScaler after({.initial = 16, .window = 5, .hysteresis = 4});
  after.continue_from(before.state());
  EXPECT_EQ(after.state(), before.state());
  for (const bool overflow : {false, false, true, true, true, true, true}) {
    step(before, overflow);
    step(after, overflow);
    EXPECT_EQ(after.state(), before.state());
  }

  LossScaler strict({.initial = 1 << 22, .hysteresis = 1, .minimum = 1 << 21});
  strict.continue_from(before.state());
  EXPECT_EQ(strict.scale(), 1 << 21);
  EXPECT_EQ(strict.state().tolerated, 0);
  strict.continue_from({});
  EXPECT_EQ(strict.scale(), 1 << 22) << "nothing was scaled before";
}

}  // namespace
}  // namespace sailor
