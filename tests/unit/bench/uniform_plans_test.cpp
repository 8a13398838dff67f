#include "tests/bench/evaluation/uniform_plans.h"

#include <gtest/gtest.h>

#include <set>

#include "planner/plan/validate.h"

namespace sailor::bench {
namespace {

TEST(UniformPlans, UseAllGpusAndEveryLayerAndFastestOnesThatFitComeFirst) {
  Inputs inputs = generate_inputs(3, 2, 1, 8);
  inputs.job.model.heads = 32;
  inputs.job.model.feed_forward = 4096;
  const std::vector<UniformPlan> plans = uniform_plans(inputs);
  ASSERT_GT(plans.size(), 20u);
  std::set<std::string> kinds;
  for (size_t i = 0; i < plans.size(); ++i) {
    const Plan& plan = plans[i].plan;
    EXPECT_EQ(num_ranks(plan), 16);
    EXPECT_TRUE(check_plan(plan, inputs.snapshot).empty());
    EXPECT_TRUE(check_plan(plan, inputs.job).empty());
    EXPECT_GT(plans[i].prediction.iteration_s, 0);
    std::string kind = summary(plan);
    for (const PlanPipeline& pipeline : plan.pipelines)
      for (const PlanStage& stage : pipeline.stages) kind += " " + stage.gpu_type;
    EXPECT_TRUE(kinds.insert(kind).second) << kind;  // no plan twice
    if (i == 0) continue;
    const Prediction &before = plans[i - 1].prediction, &now = plans[i].prediction;
    EXPECT_TRUE(before.fits || !now.fits);
    if (before.fits == now.fits) {
      EXPECT_LE(before.iteration_s, now.iteration_s);
    }
  }
}

}  // namespace
}  // namespace sailor::bench
