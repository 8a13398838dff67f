#include "planner/plan/packed_plan.h"

#include <gtest/gtest.h>

#include "planner/plan/plan_json.h"
#include "planner/spec/error.h"

namespace sailor {
namespace {

Plan plan_to_pack() {
  PlanStage stage;
  stage.end_layer = 4;
  stage.gpu_type = "x";
  stage.zone = "z";
  Plan plan;
  plan.model = "m";
  plan.global_batch = 8;
  plan.microbatch = 2;
  plan.pipelines = {{4, {stage}}};
  return plan;
}

TEST(PackedPlan, UnpacksToTheSamePlanForEveryPadding) {
  for (int length = 1; length < 8; ++length) {
    Plan plan = plan_to_pack();
    plan.model = std::string(static_cast<size_t>(length), 'm');
    EXPECT_EQ(to_json(unpack_plan(pack_plan(plan), "test")), to_json(plan));
  }
}

TEST(PackedPlan, AnyDamageIsAnErrorThatNamesTheSource) {
  std::string good = pack_plan(plan_to_pack());
  for (size_t cut = 0; cut < good.size(); ++cut) {
    EXPECT_THROW(unpack_plan(good.substr(0, cut), "test"), InputError) << "cut at " << cut;
  }
  for (size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] = bad[i] == '*' ? '#' : '*';
    EXPECT_THROW(unpack_plan(bad, "test"), InputError) << "changed at " << i;
  }
  EXPECT_THROW(unpack_plan(good + good, "test"), InputError);
}

}  // namespace
}  // namespace sailor
