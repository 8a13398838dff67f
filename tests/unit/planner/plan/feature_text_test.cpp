#include "planner/plan/feature_text.h"

#include <gtest/gtest.h>

namespace sailor {
namespace {

Plan four_stages() {
  Plan plan;
  plan.pipelines.resize(2);
  for (PlanPipeline& pipeline : plan.pipelines) pipeline.stages.resize(4);
  return plan;
}

TEST(FeatureText, NamesWhatThePlanDoes) {
  Plan plan = four_stages();
  EXPECT_EQ(feature_text(plan), "");
  plan.zero = Zero::optimizer;
  plan.interleave = 2;
  EXPECT_EQ(feature_text(plan), "zero1 interleave:2");
  plan.sequence_parallel = true;
  EXPECT_EQ(feature_text(plan), "zero1 interleave:2 sp");
  plan.sequence_parallel = false;
  plan.precision = Precision::fp16;
  EXPECT_EQ(feature_text(plan), "fp16 zero1 interleave:2");
  plan.precision.reset();
  for (PlanPipeline& pipeline : plan.pipelines)
    for (const size_t i : {0, 1, 3}) pipeline.stages[i].recompute = Recompute::full;
  EXPECT_EQ(feature_text(plan), "zero1 recompute:0-1,3 interleave:2");
  plan.pipelines[1].stages[3].recompute = Recompute::none;
  EXPECT_EQ(recomputing_stages(plan), "some");
  for (PlanPipeline& pipeline : plan.pipelines)
    for (PlanStage& stage : pipeline.stages) stage.recompute = Recompute::full;
  EXPECT_EQ(feature_text(plan), "zero1 recompute interleave:2");
  for (PlanPipeline& pipeline : plan.pipelines)
    for (PlanStage& stage : pipeline.stages) stage.recompute = {Recompute::mlp, 1, Recompute::light};
  EXPECT_EQ(feature_text(plan), "zero1 recompute-mlp interleave:2");
  EXPECT_EQ(to_string(plan.pipelines[0].stages[0].recompute), "1 mlp, light");
  EXPECT_EQ(to_string(StageRecompute(Recompute::full, 2, Recompute::none)), "2 full");
  plan.pipelines[0].stages[0].recompute = Recompute::full;
  EXPECT_EQ(feature_text(plan), "zero1 recompute interleave:2");
  plan.pipelines[1].stages[1].weight_delay = 1;
  EXPECT_EQ(feature_text(plan), "zero1 recompute interleave:2 split-backward");
  plan.pipelines[1].stages[1].weight_delay = kWholeBackward;
  EXPECT_EQ(summary(plan).substr(summary(plan).find(" of ")), " of 0, zero1 recompute interleave:2");
}

TEST(FeatureText, NumbersAreWrittenAsRanges) {
  EXPECT_EQ(number_ranges({}), "");
  EXPECT_EQ(number_ranges({4}), "4");
  EXPECT_EQ(number_ranges({0, 1, 2, 6, 8, 9}), "0-2,6,8-9");
}

}  // namespace
}  // namespace sailor
