#include "planner/plan/plan_nodes.h"

#include <gtest/gtest.h>

#include "tests/unit/planner/error_of.h"
#include "tests/unit/planner/instance.h"

namespace sailor {
namespace {

Plan placed() {
  Plan plan =
      test::make_plan(test::empty_instance(4, 8), 1, {{{0, 3, "A", 2}, {3, 6, "B", 1}}, {{0, 6, "A", 1}}});
  plan.pipelines[0].stages[0].node = plan.pipelines[1].stages[0].node = "a1";
  plan.pipelines[0].stages[0].gpus = {3, 1};
  plan.pipelines[1].stages[0].gpus = {0};
  plan.pipelines[0].stages[1].node = "b1";
  plan.pipelines[0].stages[1].gpus = {0};
  return plan;
}

TEST(PlanNodes, HaveTheGpusOfThePlan) {
  Snapshot snapshot = nodes_of_plan(placed());
  ASSERT_EQ(snapshot.nodes.size(), 2u);
  const SnapshotNode* a1 = snapshot.find("a1");
  ASSERT_NE(a1, nullptr);
  EXPECT_EQ(a1->free_gpus, (std::vector<int>{0, 1, 3}));
  EXPECT_EQ(a1->gpus, 4);
  EXPECT_EQ(a1->gpu_type, "A");
  SiteConfig site;
  site.zones = {{"z1", "r9", {"p"}, {}}};
  set_regions(snapshot, site);
  EXPECT_EQ(snapshot.find("b1")->region, "r9");
}

TEST(PlanNodes, AGpuUsedTwiceIsAnError) {
  Plan plan = placed();
  plan.pipelines[1].stages[0].gpus = {1};
  EXPECT_NE(test::error_of([&] { nodes_of_plan(plan); }).find("GPU 1 of node a1 is used twice"),
            std::string::npos);
}

TEST(PlanNodes, ThatAreTheOnlyOnesToHoldAPartOfTheState) {
  Plan plan = placed();  // a1 has all layers, b1 the second half
  EXPECT_EQ(only_holders(plan), (std::set<std::string>{"a1"}));
  plan.pipelines[1].stages[0].node = "c1";
  EXPECT_EQ(only_holders(plan), std::set<std::string>{});
  plan.zero = Zero::optimizer;
  EXPECT_EQ(only_holders(plan), (std::set<std::string>{"a1", "b1", "c1"}));
  plan.pipelines.push_back(plan.pipelines[1]);
  plan.pipelines.push_back(plan.pipelines[1]);
  plan.pipelines[0] = plan.pipelines[1];
  plan.pipelines[0].stages[0].node = plan.pipelines[1].stages[0].node = "d1";
  plan.zero_group = 2;  // one group on d1, one on c1
  EXPECT_EQ(only_holders(plan), std::set<std::string>{});
  plan.pipelines[2].stages[0].node = "d1";
  EXPECT_EQ(only_holders(plan), std::set<std::string>{"d1"}) << "both copies of the first half";
  plan = placed();
  plan.pipelines.pop_back();
  plan.zero = Zero::none;
  EXPECT_EQ(only_holders(plan), (std::set<std::string>{"a1", "b1"}));
  plan.pipelines[0].stages[1].node.clear();
  EXPECT_EQ(only_holders(plan), std::set<std::string>{});
}

}  // namespace
}  // namespace sailor
