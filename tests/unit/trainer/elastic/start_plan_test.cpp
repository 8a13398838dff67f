// The plan of a job on the nodes that it got: as planned, on equal nodes, made again, or none.
#include "trainer/elastic/start_plan.h"

#include <gmock/gmock.h>

#include <stdexcept>

#include "planner/plan/plan_json.h"
#include "planner/plan/plan_nodes.h"
#include "planner/plan/rank_layout.h"
#include "planner/plan/validate.h"
#include "tests/unit/trainer/elastic/controlled_job.h"

namespace sailor {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

// A pipeline on each of two nodes.
Plan plan_on_two_nodes() {
  Plan plan;
  plan.model = "m";
  plan.global_batch = 4;
  plan.microbatch = 1;
  for (const char* node : {"n1", "n2"}) {
    PlanStage stage;
    stage.end_layer = 6;
    stage.gpu_type = "A";
    stage.zone = "z";
    stage.shape.tp = 1;
    stage.node = node;
    stage.gpus = {0};
    plan.pipelines.push_back({2, {stage}});
  }
  return plan;
}

struct StartPlanTest : testing::Test {
  JobSpec job = controlled_job(/*global_batch=*/4, /*steps=*/10);
  Plan plan = plan_on_two_nodes();
  std::vector<NodeGroup> groups = {{{"n1", "n2"}, {"n1", "n2", "n3", "n4"}}};
  Replanner::Options options{"/nowhere/sailor.yaml", {}};

  StartPlan on(const std::vector<std::string>& nodes) {
    return plan_for_nodes(job, plan, groups, nodes, options);
  }
};

TEST_F(StartPlanTest, OnThePlannedNodesNothingChanges) {
  const StartPlan start = on({"n1", "n2"});
  EXPECT_EQ(to_json(start.plan), to_json(plan));
  EXPECT_EQ(start.text, "");
}

TEST_F(StartPlanTest, EqualNodesRunTheSamePlan) {
  const StartPlan start = on({"n2", "n4"});
  EXPECT_THAT(RankLayout(start.plan).nodes(), UnorderedElementsAre("n2", "n4"));
  EXPECT_EQ(start.text, "planned for n1, n2, runs on n2, n4");
  Plan back = start.plan;
  back.pipelines[0].stages[0].node = "n1";
  EXPECT_EQ(to_json(back), to_json(plan));
}

TEST_F(StartPlanTest, ThePlannersInputsHaveTheNodesToo) {
  PlanningFiles planning = {{"cluster.yaml", to_yaml(nodes_of_plan(plan))},
                            {"sailor.yaml", "sailor_site: 1\n"}};
  on({"n3", "n4"}).place(planning);
  const Snapshot snapshot = parse_snapshot(planning["cluster.yaml"], "cluster.yaml");
  EXPECT_NE(snapshot.find("n3"), nullptr);
  EXPECT_EQ(snapshot.find("n1"), nullptr);
  PlanningFiles none;
  on({"n3", "n4"}).place(none);
  EXPECT_TRUE(none.empty());
}

TEST_F(StartPlanTest, OnFewerNodesThePlanIsMadeAgain) {
  const StartPlan start = on({"n2"});
  EXPECT_THAT(RankLayout(start.plan).nodes(), ElementsAre("n2"));
  EXPECT_TRUE(check_plan(start.plan, job).empty());
  EXPECT_EQ(start.plan.global_batch, 4);
  EXPECT_THAT(start.text, HasSubstr("planned for n1, n2, runs on n2: "));
}

TEST_F(StartPlanTest, NoPlanIsOneError) {
  const auto error_on = [&](const std::string& node) -> std::string {
    try {
      on({node});
    } catch (const std::runtime_error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(error_on("x1"), "planned for n1, n2, but the job has x1, which are of another kind");
  plan.pipelines[0].stages[0].end_layer = 3;  // one pipeline, which one node has only in part
  PlanStage rest = plan.pipelines[1].stages[0];
  rest.first_layer = 3;
  plan.pipelines[0].stages.push_back(rest);
  plan.pipelines.pop_back();
  EXPECT_THAT(error_on("n2"),
              HasSubstr("planned for n1, n2, but the job has n2: no plan for the 1 remaining GPU"));
}

TEST_F(StartPlanTest, WithoutGroupsThePlanIsLeftAsItIs) {
  groups.clear();
  EXPECT_EQ(to_json(on({"n3", "n4"}).plan), to_json(plan));
}

}  // namespace
}  // namespace sailor
