#include "trainer/optim/lr_schedule.h"

#include <gtest/gtest.h>

#include <cmath>

namespace sailor {
namespace {

TrainingSpec training(const std::string& name, int64_t warmup, int64_t decay, double min_lr) {
  TrainingSpec spec;
  spec.steps = 100;
  spec.optimizer.lr = 1.0;
  spec.schedule.name = name;
  spec.schedule.warmup_steps = warmup;
  spec.schedule.decay_steps = decay;
  spec.schedule.min_lr = min_lr;
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

// Points of Megatron-LM's OptimizerParamScheduler.get_lr() for max_lr 1, min_lr 0.1, lr_decay_steps 80,
// wsd_decay_steps 20 and no warm-up; "1-sqrt" is its "minus_sqrt".
TEST(LrSchedule, WsdIsStableUntilItsLastSteps) {
  const auto at = [](const char* shape, int64_t step) {
    TrainingSpec spec = training("wsd", 4, 80, 0.1);
    spec.schedule.annealing_steps = 20;
    spec.schedule.annealing = shape;
    return learning_rate(spec, step);
  };
  for (const char* shape : {"linear", "cosine", "1-sqrt"}) {
    EXPECT_DOUBLE_EQ(at(shape, 1), 0.4) << shape;
    for (const int64_t step : {4, 30, 59, 60}) EXPECT_EQ(at(shape, step), 1) << shape << " " << step;
    for (const int64_t step : {80, 99}) EXPECT_NEAR(at(shape, step), 0.1, 1e-15) << shape << " " << step;
  }
  EXPECT_NEAR(at("linear", 65), 0.775, 1e-12);
  EXPECT_NEAR(at("linear", 79), 0.145, 1e-12);
  EXPECT_NEAR(at("cosine", 65), 0.8681980515339464, 1e-12);
  EXPECT_NEAR(at("cosine", 75), 0.23180194846605362, 1e-12);
  EXPECT_NEAR(at("1-sqrt", 65), 0.55, 1e-12);
  EXPECT_NEAR(at("1-sqrt", 70), 0.3636038969321073, 1e-12);
}

TEST(LrSchedule, TheInverseRootContinuesTheWarmUpAndEndsAtItsMinimum) {
  const TrainingSpec spec = training("inverse_sqrt", 24, 0, 0.3);
  EXPECT_DOUBLE_EQ(learning_rate(spec, 24), 1);
  EXPECT_DOUBLE_EQ(learning_rate(spec, 99), 0.5);
  EXPECT_DOUBLE_EQ(learning_rate(spec, 224), 1.0 / 3);
  EXPECT_DOUBLE_EQ(learning_rate(spec, 624), 0.3);
}

}  // namespace
}  // namespace sailor
