// What a submission sends along with a Slurm job, as the job finds it.
#include "planner/inputs/carried_plan.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <random>

#include "planner/plan/plan_json.h"
#include "planner/spec/error.h"

namespace sailor {
namespace {

Plan big_plan(int pipelines) {
  std::mt19937 random(7);
  Plan plan;
  plan.model = "m";
  plan.microbatch = 1;
  for (int p = 0; p < pipelines; ++p) {
    PlanPipeline pipeline;
    pipeline.microbatches = 1;
    PlanStage stage;
    stage.end_layer = 4;
    stage.gpu_type = "g" + std::to_string(random());
    stage.zone = "z" + std::to_string(random());
    stage.node = "n" + std::to_string(random());
    stage.gpus = {0};
    pipeline.stages.push_back(stage);
    plan.pipelines.push_back(pipeline);
  }
  plan.global_batch = pipelines;
  return plan;
}

// Hands the variables on as Slurm does, and takes them back at the end.
class AsInsideTheJob {
 public:
  explicit AsInsideTheJob(const EnvironmentVariables& variables) {
    for (const auto& [name, value] : variables) {
      names_.push_back("SLURM_SPANK_" + name);
      setenv(names_.back().c_str(), value.c_str(), 1);
    }
  }
  ~AsInsideTheJob() {
    for (const std::string& name : names_) unsetenv(name.c_str());
  }

 private:
  std::vector<std::string> names_;
};

TEST(CarriedPlan, APlanArrivesAsItWasSent) {
  Plan plan = big_plan(3);
  AsInsideTheJob job(plan_environment(plan, {}));
  std::optional<Plan> arrived = carried_plan(site_scheduler());
  ASSERT_TRUE(arrived.has_value());
  EXPECT_EQ(to_json(*arrived), to_json(plan));
}

TEST(CarriedPlan, ALargePlanTravelsInChunksBelowTheKernelsLimit) {
  Plan plan = big_plan(12000);
  EnvironmentVariables variables = plan_environment(plan, {});
  EXPECT_GE(variables.size(), 2u);
  for (const auto& [name, value] : variables) EXPECT_LT(name.size() + value.size(), 120u << 10);
  AsInsideTheJob job(variables);
  EXPECT_EQ(to_json(*carried_plan(site_scheduler())), to_json(plan));
}

TEST(CarriedPlan, ALostChunkIsAnErrorNotAShorterPlan) {
  EnvironmentVariables variables = plan_environment(big_plan(12000), {});
  variables.pop_back();
  AsInsideTheJob job(variables);
  EXPECT_THROW(carried_plan(site_scheduler()), InputError);
}

TEST(CarriedPlan, TheNodesThatMayReplaceThePlannedOnesTravelWithIt) {
  EnvironmentVariables variables = plan_environment(big_plan(3), {});
  {
    AsInsideTheJob job(variables);
    EXPECT_TRUE(carried_node_groups(site_scheduler()).empty());
    EXPECT_FALSE(may_move(site_scheduler()));
  }
  std::mt19937 random(5);
  NodeGroup group{{"n1"}, {}};
  for (int i = 0; i < 50'000; ++i) group.equal.push_back("n" + std::to_string(random()));
  add_node_groups(variables, {group});
  for (const auto& [name, value] : variables) EXPECT_LT(name.size() + value.size(), 120u << 10);
  AsInsideTheJob job(variables);
  const std::vector<NodeGroup> arrived = carried_node_groups(site_scheduler());
  ASSERT_EQ(arrived.size(), 1u);
  EXPECT_TRUE(may_move(site_scheduler()));
  EXPECT_EQ(arrived[0].planned, group.planned);
  EXPECT_EQ(arrived[0].equal, group.equal);
}

TEST(CarriedPlan, TheNodesForWhichTheJobQueuesTravelWithIt) {
  EnvironmentVariables variables = plan_environment(big_plan(3), {});
  add_queued_nodes(variables, {});
  {
    AsInsideTheJob job(variables);
    EXPECT_TRUE(carried_queued_nodes(site_scheduler()).empty());
  }
  const std::vector<QueuedNodes> queued = {{"fast", "east", "quick", 4, 2}, {"", "", "steady", 8, 1}};
  add_queued_nodes(variables, queued);
  AsInsideTheJob job(variables);
  EXPECT_EQ(carried_queued_nodes(site_scheduler()), queued);
  variables.back().second = R"([{"partition":"fast","nodes":2}])";
  AsInsideTheJob broken(variables);
  EXPECT_THROW(carried_queued_nodes(site_scheduler()), InputError);
}

TEST(CarriedPlan, WhatThePlanWasMadeWithArrivesOnce) {
  std::mt19937 random(5);
  std::string large;  // of several chunks, packed
  while (large.size() < 500'000) large += "n" + std::to_string(random()) + "\n";
  const PlanningFiles planning = {{"sailor.yaml", "sailor_site: 1\n"}, {"profiles/0000-a.json", large}};
  const EnvironmentVariables variables = plan_environment(big_plan(3), planning);
  for (const auto& [name, value] : variables) EXPECT_LT(name.size() + value.size(), 120u << 10);
  AsInsideTheJob job(variables);
  EXPECT_EQ(take_carried_planning(site_scheduler()), planning);
  EXPECT_EQ(take_carried_planning(site_scheduler()), PlanningFiles());
  EXPECT_TRUE(carried_plan(site_scheduler()).has_value());
}

TEST(CarriedPlan, WhatIsTooLargeToTravelIsLeftOut) {
  std::mt19937 random(5);
  std::string large;
  while (large.size() < 3'000'000) large += std::to_string(random());
  AsInsideTheJob job(plan_environment(big_plan(3), {{"profiles/0000-a.json", large}}));
  EXPECT_EQ(take_carried_planning(site_scheduler()), PlanningFiles());
  EXPECT_TRUE(carried_plan(site_scheduler()).has_value());
}

TEST(CarriedPlan, WithoutVariablesThereIsNoPlan) {
  EXPECT_FALSE(carried_plan(site_scheduler()).has_value());
  EXPECT_FALSE(site_scheduler().carried_value("SAILOR_JOB").has_value());
}

TEST(CarriedPlan, APlanTooLargeForSlurmIsRefused) {
  EXPECT_THROW(plan_environment(big_plan(60000), {}), std::runtime_error);
}

}  // namespace
}  // namespace sailor
