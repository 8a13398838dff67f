#include "tests/oracle/native/enumerate_plans.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/search/problem/goal.h"
#include "tests/bench/native/hill_climb.h"
#include "tests/bench/native/plan_moves.h"
#include "tests/bench/native/random_plan.h"
#include "tests/oracle/native/instance.h"

namespace sailor::oracle {
namespace {

PlannerInputs tiny_instance(int number) {
  return native_instance(load_catalog(SAILOR_SOURCE_DIR "/etc/catalog.yaml"), 3, number, {4, 2, 2, 5});
}

TEST(EnumeratePlans, NoPlanOfAHillClimbIsFaster) {
  int ended = 0, found = 0;
  for (int number = 0; number < 25; ++number) {
    const PlannerInputs inputs = tiny_instance(number);
    bench::Judge judge(inputs.context(), enumerated_features());
    const PlanEnumeration all = enumerate_plans(judge, kNever, 20'000);
    if (!all.complete) continue;
    ++ended;
    const std::optional<bench::Rival> climbed = bench::hill_climb(judge, {7, 10, 1000});
    if (!all.best) {
      EXPECT_FALSE(climbed) << "instance " << number;
      continue;
    }
    ++found;
    EXPECT_THAT(judge.violations(*all.best), testing::IsEmpty()) << "instance " << number;
    EXPECT_DOUBLE_EQ(judge.verdict(*all.best)->iteration_s, all.best_s);
    if (climbed) {
      EXPECT_GE(climbed->iteration_s, all.best_s * (1 - 1e-9)) << "instance " << number;
    }
  }
  EXPECT_GT(ended, 10);
  EXPECT_GT(found, 8);
}

TEST(EnumeratePlans, WhatIsKnownAlreadyChangesNoOptimum) {
  int compared = 0;
  for (int number = 0; number < 25; ++number) {
    const PlannerInputs inputs = tiny_instance(number);
    bench::Judge judge(inputs.context(), enumerated_features());
    const PlanEnumeration all = enumerate_plans(judge, kNever, 20'000);
    if (!all.complete || !all.best) continue;
    const PlanEnumeration again = enumerate_plans(judge, all.best_s * 1.02, 20'000);
    ASSERT_TRUE(again.complete && again.best) << "instance " << number;
    EXPECT_EQ(again.best_s, all.best_s) << "instance " << number;
    EXPECT_FALSE(enumerate_plans(judge, all.best_s, 20'000).best) << "instance " << number;
    ++compared;
  }
  EXPECT_GT(compared, 8);
}

// The enumeration's pruning depends on it.
TEST(EnumeratePlans, APipelineAloneIsNoSlowerAndTakesNoMoreMemory) {
  Random random(5);
  int plans = 0;
  const Catalog catalog = load_catalog(SAILOR_SOURCE_DIR "/etc/catalog.yaml");
  for (int number = 0; number < 60; ++number) {
    const PlannerInputs inputs = native_instance(catalog, 4, number, {});
    bench::Judge judge(inputs.context(), enumerated_features());
    std::optional<Plan> first;
    for (int draw = 0; draw < 20 && !(first && judge.prediction(*first)); ++draw)
      first = bench::random_plan(judge.context(), judge.allowed(), random);
    if (!first) continue;
    Plan plan = *first;
    for (int draw = 0; draw < 200; ++draw) {
      std::optional<Plan> moved = bench::random_move(judge.context(), judge.allowed(), plan, random);
      if (!moved) continue;
      plan = std::move(*moved);
      const std::optional<Prediction> whole = judge.prediction(plan);
      if (!whole) continue;
      ++plans;
      size_t at = 0;  // of the pipeline's first stage
      for (const PlanPipeline& pipeline : plan.pipelines) {
        Plan one = plan;
        one.zero = Zero::none;
        one.pipelines = {pipeline};
        const Prediction alone = *judge.prediction(one);
        EXPECT_LE(alone.pipeline_s, whole->iteration_s * (1 + 1e-12));
        if (plan.zero == Zero::none) {
          EXPECT_LE(alone.iteration_s, whole->iteration_s * (1 + 1e-12));
        }
        for (const StagePrediction& stage : alone.stages) {
          const int64_t shared = stage.memory.optimizer_bytes + stage.memory.master_bytes +
                                 (plan.zero >= Zero::gradients ? stage.memory.gradients_bytes : 0);
          const int64_t replicas = static_cast<int64_t>(plan.pipelines.size());
          const int64_t least =
              stage.memory.total() - (shards_optimizer(plan.zero) ? shared - shared / replicas : 0);
          EXPECT_LE(least, whole->stages[at++].memory.total());
        }
      }
    }
  }
  EXPECT_GT(plans, 1000);
}

}  // namespace
}  // namespace sailor::oracle
