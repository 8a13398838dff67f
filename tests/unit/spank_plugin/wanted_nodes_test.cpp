// Which nodes of helper jobs a job should return, so that others start.
#include "spank_plugin/slurm/wanted_nodes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <slurm/slurm.h>

#include "spank_plugin/slurm/commands/tres.h"

namespace sailor {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

SlurmNode node_with(const std::string& name, const std::string& gres, const std::string& used,
                    int cpus_used) {
  SlurmNode node;
  node.name = name;
  node.cpus = 16;
  node.memory_mb = 1000;
  node.gres = gres;
  node.gres_used = used;
  node.allocated_cpus = cpus_used;
  node.state = cpus_used > 0 ? NODE_STATE_ALLOCATED : NODE_STATE_IDLE;
  return node;
}

SlurmNode full(const std::string& name) {
  return node_with(name, "gpu:big:4", "gpu:big:4(IDX:0-3)", 16);
}

SlurmWaitingJob waiting(uint32_t job, int nodes, uint32_t priority = 100) {
  SlurmWaitingJob part;
  part.priority = priority;
  part.job = job;
  part.nodes = nodes;
  part.partition = "p";
  part.partitions = {"p"};
  part.reason = WaitReason::nodes;
  return part;
}

// n1 and n2 are helpers', o1 is somebody else's, all of partition p; x1 is a helper's outside of it.
SlurmView busy_cluster() {
  SlurmView view;
  view.nodes = {full("n1"), full("n2"), full("o1"), full("x1")};
  SlurmPartition p, x;
  p.name = "p";
  p.nodes = {"n1", "n2", "o1"};
  x.name = "x";
  x.nodes = {"x1"};
  view.partitions = {p, x};
  for (const char* node : {"n1", "n2", "x1"}) view.helper_shares[node] = {16, 1000, "gpu:big:4(IDX:0-3)"};
  return view;
}

TEST(WantedNodes, AJobThatWouldStartGetsAsManyAsItLacks) {
  SlurmView view = busy_cluster();
  view.queue = {waiting(7, 1)};
  const std::vector<WantedNode> one = wanted_nodes(view);
  ASSERT_EQ(one.size(), 1u);
  EXPECT_EQ(one[0].job, "7");
  EXPECT_THAT(one[0].node, testing::AnyOf("n1", "n2"));
  view.queue = {waiting(7, 2)};
  EXPECT_THAT(wanted_nodes(view), UnorderedElementsAre(WantedNode{"n1", "7"}, WantedNode{"n2", "7"}));
  view.nodes[2] = node_with("o1", "gpu:big:4", "", 0);
  EXPECT_EQ(wanted_nodes(view).size(), 1u) << "o1 is free";
}

TEST(WantedNodes, AJobThatWouldStillWaitGetsNoneAndKeepsThemFromThoseBehindIt) {
  SlurmView view = busy_cluster();
  view.queue = {waiting(7, 3), waiting(8, 1, 90)};
  EXPECT_THAT(wanted_nodes(view), IsEmpty());
  view.queue = {waiting(7, 3), waiting(8, 1, 90)};
  view.queue[1].partitions = {"x"};
  EXPECT_THAT(wanted_nodes(view), ElementsAre(WantedNode{"x1", "8"})) << "the first has no use for it";
}

TEST(WantedNodes, OnlyForJobsThatWaitForNodes) {
  SlurmView view = busy_cluster();
  view.queue = {waiting(7, 1)};
  view.queue[0].reason = WaitReason::other;
  EXPECT_THAT(wanted_nodes(view), IsEmpty()) << "a limit, a dependency";
  view.queue[0].reason = WaitReason::none_yet;
  EXPECT_THAT(wanted_nodes(view), IsEmpty()) << "not looked at yet";
  view.queue[0].reason = WaitReason::nodes;
  view.queue[0].in_reservation = true;
  EXPECT_THAT(wanted_nodes(view), IsEmpty());
  view.queue[0].in_reservation = false;
  view.queue[0].job_name = "sailor-12-helper";
  EXPECT_THAT(wanted_nodes(view), IsEmpty()) << "two jobs would exchange their nodes";
  view.queue[0].job_name = "sailor-a-helper";
  EXPECT_EQ(wanted_nodes(view).size(), 1u);
  view.helper_shares.clear();
  EXPECT_THAT(wanted_nodes(view), IsEmpty());
}

TEST(WantedNodes, AHelperJobAheadGetsFreeNodesFirst) {
  SlurmView view = busy_cluster();
  view.nodes[2] = node_with("o1", "gpu:big:4", "", 0);
  view.queue = {waiting(7, 1, 200), waiting(8, 1)};
  view.queue[0].job_name = "sailor-12-helper";
  EXPECT_EQ(wanted_nodes(view).size(), 1u);
}

TEST(WantedNodes, TheNodeMustFitTheRequest) {
  SlurmView view = busy_cluster();
  view.queue = {waiting(7, 1)};
  SlurmWaitingJob& job = view.queue[0];
  job.needs.gpus = {{"gpu:big", 5}};
  EXPECT_THAT(wanted_nodes(view), IsEmpty());
  job.needs.gpus = {{"gpu", 4}};
  EXPECT_EQ(wanted_nodes(view).size(), 1u);
  job.needs.gpus = {{"gpu:small", 1}};
  EXPECT_THAT(wanted_nodes(view), IsEmpty());
  job.needs.gpus = {};
  job.excluded = {"n1"};
  EXPECT_THAT(wanted_nodes(view), ElementsAre(WantedNode{"n2", "7"}));
  job.excluded = {};
  job.required = {"n1"};
  EXPECT_THAT(wanted_nodes(view), ElementsAre(WantedNode{"n1", "7"}));
  job.required = {"o1"};
  EXPECT_THAT(wanted_nodes(view), IsEmpty());
  job.required = {};
  job.features = "rack1";
  EXPECT_THAT(wanted_nodes(view), IsEmpty());
  view.nodes[1].features = {"rack1"};
  EXPECT_THAT(wanted_nodes(view), ElementsAre(WantedNode{"n2", "7"}));
  view.nodes[1].state |= NODE_STATE_DRAIN;
  EXPECT_THAT(wanted_nodes(view), IsEmpty());
}

TEST(WantedNodes, OfASharedNodeTheHelpersPartAndWhatIsFreeCount) {
  SlurmView view = busy_cluster();
  view.nodes = {node_with("n1", "gpu:big:4", "gpu:big:3(IDX:0-2)", 12)};  // two of a helper, one of others
  view.nodes[0].state = NODE_STATE_MIXED;
  view.nodes[0].allocated_memory_mb = 600;
  view.helper_shares = {{"n1", {8, 400, "gpu:big:2(IDX:1-2)"}}};
  view.queue = {waiting(7, 1)};
  NodeNeeds& needs = view.queue[0].needs;
  needs = {.whole = false, .gpus = {{"gpu:big", 3}}, .cpus = 12, .memory_mb = 800};
  EXPECT_THAT(wanted_nodes(view), ElementsAre(WantedNode{"n1", "7"}));
  needs.gpus = {{"gpu:big", 4}};
  EXPECT_THAT(wanted_nodes(view), IsEmpty());
  needs.gpus = {{"gpu:big", 1}};
  EXPECT_EQ(wanted_nodes(view).size(), 1u) << "it has a GPU, but too few processors are free";
  needs = {.whole = false, .gpus = {{"gpu:big", 1}}, .cpus = 4, .memory_mb = 400};
  EXPECT_THAT(wanted_nodes(view), IsEmpty()) << "it fits beside the helper";
  needs.whole = true;
  EXPECT_THAT(wanted_nodes(view), IsEmpty());
}

TEST(WantedNodes, AllComponentsOfAHeterogeneousJobMustStart) {
  SlurmView view = busy_cluster();
  view.queue = {waiting(7, 1), waiting(7, 1)};
  view.queue[1].partitions = {"x"};
  view.queue[1].reason = WaitReason::none_yet;
  EXPECT_EQ(wanted_nodes(view).size(), 2u);
  view.queue[1].nodes = 2;
  EXPECT_THAT(wanted_nodes(view), IsEmpty());
}

TEST(Tres, GpusOfARequestPerNode) {
  using Gpus = std::map<std::string, int>;
  EXPECT_EQ(gpus_of_request("gres:gpu:big:4", "", 2), (Gpus{{"gpu:big", 4}}));
  EXPECT_EQ(gpus_of_request("gres/gpu:big:4,gres/gpu:small:1", "", 2),
            (Gpus{{"gpu:big", 4}, {"gpu:small", 1}}));
  EXPECT_EQ(gpus_of_request("gres:gpu:2", "cpu=1,gres/gpu=4", 2), (Gpus{{"gpu", 2}}));
  EXPECT_EQ(gpus_of_request("", "cpu=8,mem=2G,node=2,gres/gpu=5", 2), (Gpus{{"gpu", 3}}));
  EXPECT_EQ(gpus_of_request("", "gres/gpu=4,gres/gpu:big=4", 1), (Gpus{{"gpu:big", 4}}));
  EXPECT_EQ(gpus_of_request("gres/license:3", "cpu=8,gres/gpumem=3", 2), Gpus{});
  EXPECT_EQ(gpus_of_request("gpu:2147483647,gpu:1", "gres/gpu=2147483647", 2), (Gpus{{"gpu", 1}}));
  EXPECT_EQ(gpus_of_request("", "gres/gpu=2147483647", 2), Gpus{});
}

TEST(Tres, Memory) {
  EXPECT_EQ(memory_mb_in("cpu=8,mem=2G,node=2"), 2048);
  EXPECT_EQ(memory_mb_in("mem=1500M"), 1500);
  EXPECT_EQ(memory_mb_in("cpu=8,mem=0.5T"), 524288);
  EXPECT_EQ(memory_mb_in("cpu=8"), 0);
  EXPECT_EQ(memory_mb_in("mem=1e300G"), 0);
}

}  // namespace
}  // namespace sailor
