#include "spank_plugin/slurm/allocation.h"

#include <gmock/gmock.h>

#include <numeric>

namespace sailor {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::Not;
using testing::StartsWith;

LiveCluster cluster_of(std::vector<LivePartition> partitions) {
  LiveCluster cluster;
  cluster.partitions = std::move(partitions);
  auto add = [&](const std::string& name, const std::string& partition, const std::string& type, int gpus) {
    SnapshotNode node{name, partition, "z", "r", type, gpus, std::vector<int>(gpus), ""};
    std::iota(node.free_gpus.begin(), node.free_gpus.end(), 0);
    cluster.snapshot.nodes.push_back(node);
    cluster.nodes.push_back({name, "gpu:" + type + ":" + std::to_string(gpus)});
  };
  add("a1", "fast", "big", 4);
  add("a10", "fast", "big", 4);
  add("a2", "fast", "big", 4);
  add("v1", "slow", "small", 2);
  return cluster;
}

const LivePartition kFast{"fast", {}, {"a1", "a10", "a2"}};
const LivePartition kSlow{"slow", {}, {"v1"}};
const LivePartition kAll{"all", {}, {"a1", "a10", "a2", "v1"}};

// One pipeline; each stage is (node, GPUs).
Plan plan_on(std::vector<std::pair<std::string, int>> stages) {
  Plan plan;
  plan.global_batch = 1;
  plan.microbatch = 1;
  plan.pipelines.emplace_back();
  plan.pipelines[0].microbatches = 1;
  int layer = 0;
  for (const auto& [node, gpus] : stages) {
    PlanStage stage;
    stage.first_layer = layer;
    stage.end_layer = ++layer;
    stage.shape.tp = gpus;
    stage.node = node;
    stage.gpus.resize(gpus);
    std::iota(stage.gpus.begin(), stage.gpus.end(), 0);
    plan.pipelines[0].stages.push_back(stage);
  }
  return plan;
}

TEST(Allocation, OnePartitionGivesAnOrdinaryJobOnExactlyTheNodes) {
  auto components = allocate(plan_on({{"a10", 4}, {"a2", 4}}), cluster_of({kFast, kSlow}));
  ASSERT_EQ(components.size(), 1u);
  EXPECT_THAT(submit_options(components[0]),
              ElementsAre("--partition=fast", "--nodelist=a2,a10", "--nodes=2", "--ntasks=8",
                          "--ntasks-per-node=4", "--gres=gpu:big:4", "--exclusive"));
}

TEST(Allocation, TwoPartitionsGiveComponentsInTheOrderOfTheirNodes) {
  auto components = allocate(plan_on({{"v1", 2}, {"a2", 2}, {"a1", 4}}), cluster_of({kSlow, kFast}));
  ASSERT_EQ(components.size(), 2u);
  EXPECT_EQ(components[0].partition, "fast");
  EXPECT_THAT(components[0].nodes, ElementsAre("a1", "a2"));
  EXPECT_EQ(components[0].tasks, 6);
  EXPECT_THAT(submit_options(components[0]), Not(Contains(StartsWith("--ntasks-per-node"))));
  EXPECT_EQ(components[1].partition, "slow");
  EXPECT_EQ(components[1].tasks, 2);
}

TEST(Allocation, TheUmbrellaHoldsWhatNoOtherPartitionHolds) {
  auto components = allocate(plan_on({{"v1", 2}, {"a1", 4}}), cluster_of({kFast, kSlow, kAll}));
  ASSERT_EQ(components.size(), 1u);
  EXPECT_EQ(components[0].partition, "all");
  EXPECT_EQ(components[0].gres, "") << "nodes differ: no request per node fits both";
  EXPECT_EQ(allocate(plan_on({{"a1", 4}}), cluster_of({kFast, kSlow, kAll}))[0].partition, "fast");
}

TEST(Allocation, APartitionThatAllowsFewerNodesDoesNotHoldThem) {
  LivePartition small_umbrella = kAll;
  small_umbrella.max_nodes = 1;
  EXPECT_EQ(allocate(plan_on({{"v1", 2}, {"a1", 4}}), cluster_of({kFast, kSlow, small_umbrella})).size(), 2u);
}

TEST(Allocation, APlanThatIsNotPlacedOrNamesAnUnknownNodeIsRefused) {
  EXPECT_THROW(allocate(plan_on({{"", 1}}), cluster_of({kFast})), std::runtime_error);
  EXPECT_THROW(allocate(plan_on({{"x9", 1}}), cluster_of({kFast})), std::runtime_error);
}

TEST(Allocation, HostsAreSortedByTheValueOfTheirNumbers) {
  EXPECT_TRUE(host_less("n2", "n10"));
  EXPECT_FALSE(host_less("n10", "n2"));
  EXPECT_TRUE(host_less("a9", "b1"));
  EXPECT_TRUE(host_less("n1", "n1a"));
  EXPECT_FALSE(host_less("n1", "n1"));
  EXPECT_NE(host_less("n1", "n01"), host_less("n01", "n1"));
}

}  // namespace
}  // namespace sailor
