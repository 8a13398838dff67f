// Which free nodes a running job takes: those that pay, and no others.
#include "trainer/elastic/growth_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/plan/rank_layout.h"

namespace sailor {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const std::string kFixtures = std::string(SAILOR_SOURCE_DIR) + "/tests/golden/fixtures/";

SnapshotNode node_of(const std::string& name, const std::string& type, const std::string& zone, int gpus) {
  SnapshotNode node;
  node.name = name;
  node.partition = "p";
  node.zone = zone;
  node.region = "land";
  node.gpu_type = type;
  node.gpus = gpus;
  for (int gpu = 0; gpu < gpus; ++gpu) node.free_gpus.push_back(gpu);
  return node;
}

// A job on the two GPUs of q1, with plans that are searched.
struct GrowthChoice : testing::Test {
  JobSpec job = load_job_spec(kFixtures + "job.yaml");
  Plan plan = [] {
    PlanStage stage;
    stage.first_layer = 0;
    stage.end_layer = 6;
    stage.gpu_type = "quick";
    stage.zone = "east";
    stage.shape.tp = 2;
    stage.node = "q1";
    stage.gpus = {0, 1};
    Plan p;
    p.model = "tiny";
    p.global_batch = 8;
    p.microbatch = 2;
    p.pipelines = {{4, {stage}}};
    return p;
  }();

  Replanner replanner(PlanOverrides overrides = {}) const {
    Replanner::Options options;
    options.site_config = kFixtures + "sailor.yaml";
    options.overrides = std::move(overrides);
    options.time.limit_s = 20;
    return {job, plan, options};
  }
  // On the best plan for those two GPUs, with many steps to go.
  GrowthQuestion question(std::vector<SnapshotNode> free, PlanOverrides overrides = {}) const {
    const Replanner planner = replanner(std::move(overrides));
    GrowthQuestion q{.planner = planner.copy(),
                     .plan = *planner.plan_for({{"q1", 0}, {"q1", 1}}, plan).plan,
                     .gpus = {{"q1", 0}, {"q1", 1}},
                     .free = std::move(free),
                     .most_new = {},
                     .iteration_s = 0,
                     .steps_left = 100000,
                     .time_left_s = {},
                     .change_s = 5};
    q.iteration_s = 2 * q.plan.prediction->iteration_s;  // twice what was predicted
    return q;
  }
  static std::vector<std::string> names(const GrowthAnswer& answer) {
    std::vector<std::string> result;
    for (const SnapshotNode& node : answer.nodes) result.push_back(node.name);
    return result;
  }
};

TEST(GrowthLimits, NodesAreTakenWithinThem) {
  std::vector<SnapshotNode> nodes = {node_of("a", "x", "east", 4), node_of("b", "y", "east", 4),
                                     node_of("c", "x", "east", 4)};
  const auto left = [&](std::vector<GpuLimit> limits) {
    std::string text;
    for (const SnapshotNode& node : within_limits(nodes, std::move(limits)))
      text += node.name + std::to_string(node.free_gpus.size());
    return text;
  };
  EXPECT_EQ(left({}), "a4b4c4");
  EXPECT_EQ(left({{9, "", ""}}), "a4b4") << "whole nodes";
  for (SnapshotNode& node : nodes) node.shared = true;
  EXPECT_EQ(left({{9, "", ""}}), "a4b4c1");
  EXPECT_EQ(left({{9, "", ""}, {2, "x", ""}}), "a2b4");
  EXPECT_EQ(left({{0, "", ""}}), "");
}

TEST_F(GrowthChoice, ANodeAsQuickAsTheJobsOwnIsTaken) {
  const GrowthQuestion asked = question({node_of("q2", "quick", "east", 2)});
  const GrowthAnswer answer = choose_growth(asked);
  EXPECT_THAT(names(answer), ElementsAre("q2")) << answer.why;
  EXPECT_THAT(answer.nodes[0].free_gpus, ElementsAre(0, 1));
  // What was measured falls as what is predicted does.
  EXPECT_LT(answer.iteration_s, 0.7 * asked.iteration_s);
  EXPECT_GT(answer.iteration_s, 0.4 * asked.iteration_s);
}

TEST_F(GrowthChoice, WantedNodesAreReturnedIfThereIsAPlanWithoutThem) {
  GrowthQuestion asked = question({node_of("q3", "quick", "east", 2)});
  Replanner with = replanner();
  with.add_node(node_of("q2", "quick", "east", 2));
  asked.planner = with.copy();
  asked.gpus.insert(asked.gpus.end(), {{"q2", 0}, {"q2", 1}});
  asked.wanted = {{"q2", "123"}};
  GrowthAnswer answer = choose_growth(asked);
  EXPECT_EQ(answer.returns, asked.wanted);
  EXPECT_THAT(answer.nodes, IsEmpty()) << "one after the other";
  asked.wanted = {{"q1", "123"}, {"q2", "123"}};
  EXPECT_THAT(choose_growth(asked).returns, IsEmpty()) << "nothing would be left";
  asked.wanted = {{"q2", "123"}};
  asked.steps_left = 1;
  EXPECT_THAT(choose_growth(asked).returns, IsEmpty()) << "it ends before the change would";
}

TEST_F(GrowthChoice, OfASharedNodeTheJobAsksForTheGpusThatItUsesWithTheirPart) {
  SnapshotNode shared = node_of("q2", "quick", "east", 8);
  shared.free_gpus = {2, 3, 5, 7};
  shared.shared = true;
  shared.host = {"gpu:q", 40, int64_t{8} << 30};
  PlanOverrides overrides;
  overrides.max_gpus["quick"] = 3;
  const GrowthAnswer answer = choose_growth(question({shared}, overrides));
  ASSERT_EQ(answer.nodes.size(), 1u) << answer.why;
  EXPECT_THAT(answer.nodes[0].free_gpus, ElementsAre(0)) << "as the helper job numbers its GPU";
  EXPECT_EQ(answer.nodes[0].host.cpus, 10);
  EXPECT_EQ(answer.nodes[0].host.memory_bytes, int64_t{2} << 30);
}

TEST_F(GrowthChoice, OfEqualNodesNoMoreAreTakenThanHelp) {
  // Eight sequences per iteration: more than eight GPUs bring next to nothing.
  std::vector<SnapshotNode> free;
  for (int i = 2; i <= 12; ++i) free.push_back(node_of("q" + std::to_string(i), "quick", "east", 2));
  const GrowthAnswer answer = choose_growth(question(free));
  ASSERT_FALSE(answer.nodes.empty());
  EXPECT_LT(answer.nodes.size(), free.size()) << answer.why;
}

TEST_F(GrowthChoice, NodesThatNobodyCanUseAreNone) {
  EXPECT_THAT(choose_growth(question({node_of("u1", "unprofiled", "east", 4)})).why,
              HasSubstr("no free node can be used"));
  EXPECT_THAT(choose_growth(question({node_of("x1", "unheard-of", "east", 4)})).nodes, IsEmpty());
}

TEST_F(GrowthChoice, LimitsOfTheSubmissionHold) {
  PlanOverrides two;
  two.max_gpus = {{"quick", 2}};
  EXPECT_THAT(choose_growth(question({node_of("q2", "quick", "east", 2)}, two)).nodes, IsEmpty());
  PlanOverrides east;
  east.zones = {"east"};
  EXPECT_THAT(choose_growth(question({node_of("q2", "quick", "west", 2)}, east)).nodes, IsEmpty());
  GrowthQuestion one = question({node_of("q2", "quick", "east", 2), node_of("q3", "quick", "east", 2)});
  EXPECT_EQ(choose_growth(one).nodes.size(), 2u);
  one.most_new = 1;
  EXPECT_EQ(choose_growth(one).nodes.size(), 1u);
}

TEST_F(GrowthChoice, APartitionThatTheJobNamesDoesNotForbidItsOwnNodes) {
  job.resources.partitions = {"fast"};
  EXPECT_TRUE(replanner().plan_for({{"q1", 0}, {"q1", 1}}, plan).plan->prediction);
}

TEST_F(GrowthChoice, ForFewStepsNothingIsTaken) {
  GrowthQuestion asked = question({node_of("q2", "quick", "east", 2)});
  asked.steps_left = 3;
  const GrowthAnswer answer = choose_growth(asked);
  EXPECT_THAT(answer.nodes, IsEmpty());
  EXPECT_THAT(answer.why, HasSubstr("with q2"));
}

TEST_F(GrowthChoice, CostDecidesWhenItIsTheObjective) {
  PlanOverrides cheap;
  cheap.objective = Expense::cost;
  EXPECT_THAT(choose_growth(question({node_of("q2", "quick", "east", 2)}, cheap)).nodes, IsEmpty());
}

TEST_F(GrowthChoice, NodesToWaitForAreOrderedByTheObjective) {
  PlanOverrides cheap;
  cheap.objective = Expense::cost;
  GrowthQuestion asked = question({}, cheap);
  asked.later = {node_of("s4", "steady", "east", 4), node_of("s1", "steady", "east", 1)};
  const GrowthAnswer answer = choose_growth(asked);
  ASSERT_EQ(answer.waits.size(), 2u) << answer.why;
  EXPECT_EQ(answer.waits[0].node.name, "s1");
  EXPECT_LT(answer.waits[0].value, answer.waits[1].value);
  EXPECT_GT(answer.waits[0].iteration_s, answer.waits[1].iteration_s) << "the slower is cheaper";
}

TEST(PaysInTime, TheChangeIsEarnedBackInTheTimeThatIsLeft) {
  EXPECT_TRUE(pays_in_time(1.0, 0.5, 10, 100, {}));   // 60 s instead of 100
  EXPECT_FALSE(pays_in_time(1.0, 0.5, 10, 20, {}));   // 20 s either way
  EXPECT_FALSE(pays_in_time(1.0, 0.99, 0, 100, {}));  // hardly anything
  EXPECT_FALSE(pays_in_time(1.0, 0.5, 10, 100, 15));  // the job ends before
  EXPECT_FALSE(pays_in_time(1.0, 0.5, 10, 100, -5));
  EXPECT_TRUE(pays_in_time(1.0, 0.5, 10, 100, 50));  // 80 steps instead of 50
  EXPECT_FALSE(pays_in_time(0, 0.5, 10, 100, {}));
}

}  // namespace
}  // namespace sailor
