#include "spank_plugin/permission.h"

#include <gmock/gmock.h>
#include <unistd.h>

namespace sailor {
namespace {

using testing::HasSubstr;

TEST(Permission, UsersAndMembersOfGroupsMayPlan) {
  const User ann{1000, "ann", {"ann", "ml"}};
  const User root{0, "root", {"root"}};
  SitePolicy policy;
  EXPECT_EQ(reason_not_to_plan(policy, ann), "");
  policy.users = {"bob"};
  EXPECT_THAT(reason_not_to_plan(policy, ann), HasSubstr("user ann"));
  EXPECT_EQ(reason_not_to_plan(policy, root), "");
  policy.groups = {"ml"};
  EXPECT_EQ(reason_not_to_plan(policy, ann), "");
  policy.groups = {"m"};
  EXPECT_NE(reason_not_to_plan(policy, ann), "");
  policy.users = {"ann"};
  EXPECT_EQ(reason_not_to_plan(policy, ann), "");
}

TEST(Permission, TheSwitchIsForEverybody) {
  SitePolicy policy;
  policy.planning = false;
  const User root{0, "root", {}};
  EXPECT_EQ(reason_not_to_plan(policy, root), "planning is switched off on this cluster");
  policy.reason = "until Friday";
  EXPECT_EQ(reason_not_to_plan(policy, root), "planning is switched off on this cluster: until Friday");
}

TEST(Permission, AGivenPlanIsCounted) {
  Plan plan;
  PlanStage stage;
  stage.gpu_type = "X";
  stage.zone = "z";
  stage.shape.tp = 2;
  plan.pipelines.resize(2);
  for (PlanPipeline& pipeline : plan.pipelines) pipeline.stages = {stage, stage};
  SitePolicy policy;
  policy.max_gpus = {{"X", 8}, {"X@other", 0}, {"Y", 0}};
  EXPECT_EQ(reason_not_to_use(policy, plan), "");
  policy.max_gpus["X@z"] = 7;
  EXPECT_EQ(reason_not_to_use(policy, plan), "the plan has 8 GPUs of X@z, this cluster allows a job 7");
  policy.max_gpus = {{kTotalGpus, 8}};
  EXPECT_EQ(reason_not_to_use(policy, plan), "");
  policy.max_gpus = {{kTotalGpus, 7}};
  EXPECT_EQ(reason_not_to_use(policy, plan), "the plan has 8 GPUs, this cluster allows a job 7");
}

TEST(Permission, ThisUserIsTheOwnerOfTheProcess) {
  const User user = this_user();
  EXPECT_EQ(user.id, geteuid());
  EXPECT_EQ(user.id == 0, user.name == "root");
}

}  // namespace
}  // namespace sailor
