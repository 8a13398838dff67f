#include "trainer/optim/lr_schedule.h"

#include <gtest/gtest.h>

#include <cmath>

namespace sailor {
namespace {

TrainingSpec training(const std::string& name, int64_t warmup, int64_t decay, double min_lr) {
  TrainingSpec spec;
  spec.steps = 100;
  spec.optimizer.lr = 1.0;
  spec.schedule = {name, warmup, decay, min_lr};
  return spec;
}

TEST(LrSchedule, WithoutOneTheRateIsConstant) {
  TrainingSpec spec;
  spec.optimizer.lr = 0.25;
  for (const int64_t step : {0, 1, 1000}) EXPECT_EQ(learning_rate(spec, step), 0.25);
}

TEST(LrSchedule, WarmUpRisesLinearlyAndIsOverAfterItsSteps) {
  for (const char* name : {"constant", "linear", "cosine"}) {
    const TrainingSpec spec = training(name, 4, 0, 0);
    for (int64_t step = 0; step <= 4; ++step)
      EXPECT_DOUBLE_EQ(learning_rate(spec, step), static_cast<double>(step + 1) / 5) << name;
  }
}

// Points of nanoGPT's get_lr(it) for learning_rate 1, warmup_iters 10, lr_decay_iters 50, min_lr 0.1.
TEST(LrSchedule, CosineFallsAsInNanoGpt) {
  const TrainingSpec spec = training("cosine", 10, 50, 0.1);
  EXPECT_DOUBLE_EQ(learning_rate(spec, 10), 1.0);
  EXPECT_NEAR(learning_rate(spec, 20), 0.1 + 0.9 * 0.5 * (1 + std::sqrt(0.5)), 1e-12);
  EXPECT_NEAR(learning_rate(spec, 30), 0.55, 1e-12);
  EXPECT_NEAR(learning_rate(spec, 50), 0.1, 1e-12);
  EXPECT_NEAR(learning_rate(spec, 99), 0.1, 1e-12);
}

TEST(LrSchedule, LinearFallsToTheJobsEndUnlessItSaysOtherwise) {
  EXPECT_DOUBLE_EQ(learning_rate(training("linear", 0, 0, 0), 25), 0.75);
  EXPECT_DOUBLE_EQ(learning_rate(training("linear", 0, 50, 0.2), 25), 0.6);
  EXPECT_DOUBLE_EQ(learning_rate(training("linear", 0, 50, 0.2), 80), 0.2);
}

}  // namespace
}  // namespace sailor
