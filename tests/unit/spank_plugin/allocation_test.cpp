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
    node.shared = !cluster.partitions.front().whole_nodes;
    node.host = {"gpu:" + type, 8 * gpus, int64_t{gpus} << 34};
    cluster.snapshot.nodes.push_back(node);
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
const RankRequest kFiveGiB{.memory_bytes = {{"big", int64_t{5} << 30}, {"small", int64_t{2} << 30}}};

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
    stage.gpu_type = node.starts_with("v") ? "small" : "big";
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
                          "--ntasks-per-node=4", "--cpus-per-task=8", "--gres=gpu:big:4"));
}

TEST(Allocation, WhatTheRanksNeedIsAskedFor) {
  const auto components = allocate(plan_on({{"a1", 2}, {"a2", 2}}), cluster_of({kFast}), kFiveGiB);
  EXPECT_THAT(submit_options(components[0]),
              ElementsAre("--partition=fast", "--nodelist=a1,a2", "--nodes=2", "--ntasks=4",
                          "--ntasks-per-node=2", "--cpus-per-task=8", "--mem=10240M", "--gres=gpu:big:2"));
  ASSERT_EQ(components[0].needs.size(), 2u);
  EXPECT_FALSE(components[0].needs[1].whole);
  EXPECT_EQ(components[0].needs[1].cpus, 16);
  EXPECT_EQ(components[0].needs[1].memory_mb, 10240);
  EXPECT_THAT(components[0].needs[1].gpus, ElementsAre(testing::Pair("gpu:big", 2)));
}

TEST(Allocation, NodesWithDifferentNumbersOfRanksAreAskedForRankByRank) {
  EXPECT_THAT(submit_options(allocate(plan_on({{"a1", 3}, {"a2", 1}}), cluster_of({kFast}), kFiveGiB)[0]),
              ElementsAre("--partition=fast", "--nodelist=a1,a1,a1,a2", "--distribution=arbitrary",
                          "--ntasks=4", "--cpus-per-task=8", "--mem-per-cpu=640M", "--gpus-per-task=1"));
  EXPECT_THAT(submit_options(allocate(plan_on({{"a1", 2}, {"v1", 1}}), cluster_of({kAll}))[0]),
              testing::IsSupersetOf({"--nodelist=a1,a1,v1", "--gpus-per-task=1"}));
  EXPECT_THAT(submit_options(allocate(plan_on({{"a1", 2}, {"v1", 2}}), cluster_of({kAll}))[0]),
              testing::IsSupersetOf({"--nodelist=a1,v1", "--ntasks-per-node=2", "--gres=gpu:2"}));
}

TEST(Allocation, AllComponentsAskForMemoryInOneForm) {
  const auto options_of = [](const LivePartition& slow, const RankRequest& request) {
    std::vector<std::string> memory;
    for (const Component& component :
         allocate(plan_on({{"a1", 3}, {"a2", 1}, {"v1", 2}}), cluster_of({kFast, slow}), request))
      for (const std::string& option : submit_options(component))
        if (option.starts_with("--mem")) memory.push_back(option);
    return memory;
  };
  EXPECT_THAT(options_of(kSlow, kFiveGiB), ElementsAre("--mem-per-cpu=640M", "--mem-per-cpu=256M"));
  LivePartition whole = kSlow;
  whole.whole_nodes = true;
  EXPECT_THAT(options_of(whole, kFiveGiB), ElementsAre("--mem-per-cpu=640M", "--mem-per-cpu=0"));
  RankRequest cpus_in_command = kFiveGiB;
  cpus_in_command.cpus_are_given = true;
  EXPECT_THAT(options_of(kSlow, cpus_in_command), ElementsAre("--mem=15360M", "--mem=4096M"));
  const auto components =
      allocate(plan_on({{"a1", 3}, {"a2", 1}, {"v1", 2}}), cluster_of({kFast, kSlow}), kFiveGiB);
  EXPECT_THAT(submit_options_evenly(components[1]), Contains("--mem=4096M"));
}

TEST(Allocation, SallocAndSrunAskForAsMuchOnEveryNodeAsOnTheFullest) {
  const auto components = allocate(plan_on({{"a1", 3}, {"a2", 1}}), cluster_of({kFast}), kFiveGiB);
  EXPECT_THAT(submit_options_with_tasks(components[0]),
              testing::IsSupersetOf(
                  {"--mem=15360M", "--gres=gpu:3", "--nodelist=a1,a1,a1,a2", "--distribution=arbitrary"}));
  EXPECT_THAT(submit_options_with_tasks(components[0]), Not(Contains(StartsWith("--gpus-per-task"))));
  EXPECT_THAT(submit_options_evenly(components[0]),
              ElementsAre("--partition=fast", "--nodelist=a1,a2", "--nodes=2", "--ntasks=6",
                          "--ntasks-per-node=3", "--cpus-per-task=8", "--mem=15360M", "--gres=gpu:3"));
}

TEST(Allocation, WholeNodesAreAskedForWithAllTheyHave) {
  LivePartition whole = kFast;
  whole.whole_nodes = true;
  const auto components = allocate(plan_on({{"a1", 3}, {"a2", 1}}), cluster_of({whole}), kFiveGiB);
  EXPECT_THAT(submit_options(components[0]),
              ElementsAre("--partition=fast", "--nodelist=a1,a2", "--nodes=2", "--ntasks=4", "--mem=0",
                          "--gres=gpu:big:4", "--exclusive"));
  EXPECT_TRUE(components[0].needs[0].whole);
}

TEST(Allocation, WhatTheUserGivesIsNotAskedForAgain) {
  RankRequest request = kFiveGiB;
  request.cpus = 3;
  request.cpus_are_given = request.memory_is_given = true;
  const auto components = allocate(plan_on({{"a1", 2}}), cluster_of({kFast}), request);
  EXPECT_THAT(submit_options(components[0]),
              ElementsAre("--partition=fast", "--nodelist=a1", "--nodes=1", "--ntasks=2",
                          "--ntasks-per-node=2", "--gres=gpu:big:2"));
  EXPECT_EQ(components[0].needs[0].cpus, 6);
}

TEST(Allocation, GpusOfSeveralTypesOnANodeAreAskedForByType) {
  LiveCluster cluster = cluster_of({kFast});
  SnapshotNode slices = cluster.snapshot.nodes[0];
  slices.gpu_type = "slice";
  slices.free_gpus = {4, 5};
  slices.host.gres = "gpu:1g.10gb";
  cluster.snapshot.nodes.push_back(slices);
  Plan plan = plan_on({{"a1", 2}, {"a1", 1}});
  plan.pipelines[0].stages[1].gpu_type = "slice";
  EXPECT_THAT(submit_options(allocate(plan, cluster)[0]), Contains("--gres=gpu:1g.10gb:1,gpu:big:2"));
  // Slurm has no such request for ranks of which the types differ from node to node.
  plan.pipelines[0].stages.push_back(plan_on({{"a2", 1}}).pipelines[0].stages[0]);
  const auto components = allocate(plan, cluster);
  ASSERT_EQ(components.size(), 2u);
  EXPECT_EQ(components[0].partition, components[1].partition);
  EXPECT_EQ(components[1].gres, "gpu:big:1");
}

TEST(Allocation, NodesWithLittleMemoryAreAComponentOfTheirOwn) {
  LiveCluster cluster = cluster_of({kAll});
  cluster.snapshot.nodes.back().host.memory_bytes = int64_t{6} << 30;
  const auto components = allocate(plan_on({{"a1", 2}, {"v1", 2}}), cluster, kFiveGiB);
  ASSERT_EQ(components.size(), 2u);
  EXPECT_THAT(submit_options(components[0]), Contains("--mem=10240M"));
  EXPECT_THAT(submit_options(components[1]), Contains("--mem=4096M"));
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
