#include "spank_plugin/slurm/live_cluster.h"

#include <gmock/gmock.h>
#include <slurm/slurm.h>

#include "planner/spec/error.h"

namespace sailor {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

SlurmNode idle(const std::string& name, const std::string& gres) {
  SlurmNode node;
  node.name = name;
  node.state = NODE_STATE_IDLE;
  node.gres = gres;
  node.cpus = 64;
  node.memory_mb = 64'000;
  return node;
}

SlurmPartition partition(const std::string& name, std::vector<std::string> nodes) {
  SlurmPartition result;
  result.name = name;
  result.nodes = std::move(nodes);
  return result;
}

// Two partitions with two nodes each, and one over all.
class LiveClusterTest : public testing::Test {
 protected:
  LiveClusterTest() {
    view.now = 1000;
    view.nodes = {idle("a1", "gpu:big:4"), idle("a2", "gpu:big:4"), idle("b1", "gpu:small:2"),
                  idle("b2", "gpu:small:2"), idle("login", "")};
    view.partitions = {partition("all", {"a1", "a2", "b1", "b2"}), partition("fast", {"a1", "a2"}),
                       partition("slow", {"b1", "b2"})};
    site.umbrella_partition = "all";
    site.gres = {{"big", "BIG-40"}};
  }

  std::vector<std::string> offered() {
    std::vector<std::string> names;
    for (const SnapshotNode& node : live_cluster(view, site, wishes).snapshot.nodes)
      names.push_back(node.name);
    return names;
  }
  std::string reason(const std::string& node) {
    for (const std::string& line : live_cluster(view, site, wishes).snapshot.not_free) {
      if (line.rfind(node + ": ", 0) == 0) return line.substr(node.size() + 2);
    }
    return "";
  }

  // Of the first partition.
  std::vector<std::string> all_nodes() {
    std::vector<std::string> names;
    const LiveCluster cluster = live_cluster(view, site, wishes);
    for (const PartitionNode& node : cluster.partitions.front().all) names.push_back(node.name);
    return names;
  }

  SlurmView view;
  SiteConfig site;
  NodeWishes wishes;
};

TEST_F(LiveClusterTest, NodesThatAJobCouldHaveLaterIncludeTheBusyOnes) {
  view.nodes[1].state = NODE_STATE_DOWN;
  wishes.partitions = {"all"};
  EXPECT_THAT(all_nodes(), ElementsAre("a1", "a2", "b1", "b2"));
  const PartitionNode node = live_cluster(view, site, wishes).partitions.front().all.front();
  EXPECT_THAT(node.gpus, ElementsAre(testing::Pair("gpu:big", 4)));
  wishes.excluded_nodes = {"b2"};
  EXPECT_THAT(all_nodes(), ElementsAre("a1", "a2", "b1"));
  view.nodes[0].features = view.nodes[1].features = {"new"};
  wishes.features = "new";
  EXPECT_THAT(all_nodes(), ElementsAre("a1", "a2"));
}

// One QOS, which the only association has by default.
Accounting one_qos(std::vector<TresLimit> limits) {
  Accounting accounting;
  accounting.qos = {{.name = "q", .limits = {std::move(limits), {}}}};
  accounting.associations = {{.id = 1,
                              .account = "a",
                              .user = "u",
                              .partition = "",
                              .parent = "",
                              .is_default = true,
                              .default_qos = "q"}};
  return accounting;
}

TEST_F(LiveClusterTest, LimitsOfTheWholeJobAreThePlanners) {
  view.accounting = one_qos({{TresLimit::Of::user, "gres/gpu", 7, 3},
                             {TresLimit::Of::job, "gres/gpu:big", 2, 0},
                             {TresLimit::Of::job, "node", 3, 0},
                             {TresLimit::Of::user, "job", 1, 1}});
  const LiveCluster cluster = live_cluster(view, site, wishes);
  ASSERT_EQ(cluster.snapshot.limits.size(), 2U);
  EXPECT_EQ(cluster.snapshot.limits[0].gpus, 4);
  EXPECT_EQ(cluster.snapshot.limits[0].gpu_type, "");
  EXPECT_EQ(cluster.snapshot.limits[0].reason, "QOS q allows 7 GPUs per user, 3 are in use: at most 4");
  EXPECT_EQ(cluster.snapshot.limits[1].gpus, 2);
  EXPECT_EQ(cluster.snapshot.limits[1].gpu_type, "BIG-40");
  EXPECT_EQ(cluster.max_nodes(), 3);
  EXPECT_THAT(cluster.notes,
              ElementsAre("QOS q allows 1 job per user, 1 is running: the job waits until one has ended"));
  EXPECT_THAT(offered(), ElementsAre("a1", "a2", "b1", "b2"));
}

TEST_F(LiveClusterTest, ALimitOnProcessorsLimitsRanks) {
  view.accounting = one_qos({{TresLimit::Of::job, "cpu", 12, 0}});
  EXPECT_EQ(live_cluster(view, site, wishes).snapshot.limits.at(0).gpus, 12);
  wishes.cpus_per_rank = 4;
  EXPECT_EQ(live_cluster(view, site, wishes).snapshot.limits.at(0).gpus, 3);
}

TEST_F(LiveClusterTest, LimitsOfAPartitionsQosLimitWhatIsOfferedThere) {
  view.accounting = one_qos({});
  view.accounting->qos.push_back(
      {.name = "of-fast", .limits = {{{TresLimit::Of::job, "gres/gpu", 5, 0}}, {}}});
  view.partitions[1].qos = "of-fast";
  wishes.partitions = {"fast", "slow"};
  const LiveCluster cluster = live_cluster(view, site, wishes);
  EXPECT_THAT(cluster.snapshot.limits, IsEmpty());
  ASSERT_EQ(cluster.snapshot.nodes.size(), 4U);
  EXPECT_EQ(cluster.snapshot.nodes[0].free_gpus.size(), 4U);
  EXPECT_THAT(cluster.snapshot.nodes[1].free_gpus, ElementsAre(0));
  EXPECT_EQ(cluster.snapshot.nodes[2].free_gpus.size(), 2U);
}

TEST_F(LiveClusterTest, WholeNodesCountWithAllTheirGpus) {
  view.accounting = one_qos({{TresLimit::Of::job, "gres/gpu", 7, 0}});
  wishes.whole_nodes = true;
  EXPECT_THAT(offered(), ElementsAre("a1", "b1"));
  EXPECT_EQ(reason("a2"), "QOS q allows 7 GPUs per job");
}

TEST_F(LiveClusterTest, APartitionWhoseLimitTheJobExceedsIsNotUsed) {
  view.accounting = one_qos({});
  view.accounting->qos[0].limits.max_wall_s = 600;
  view.accounting->qos[0].ignores_node_limit = true;
  view.partitions[0].max_nodes = 1;
  EXPECT_THAT(offered(), ElementsAre("a1", "a2", "b1", "b2"));
  wishes.time_limit_s = 601;
  EXPECT_THAT(offered(), IsEmpty());
  EXPECT_EQ(reason("a1"), "partition all cannot be used: QOS q allows jobs of 10 minutes at most");
}

TEST_F(LiveClusterTest, WhatIsNotKnownOfAccountsIsANote) {
  view.accounting = Accounting{};
  view.accounting->note = "nothing is known";
  EXPECT_THAT(live_cluster(view, site, wishes).notes, ElementsAre("nothing is known"));
  EXPECT_THAT(offered(), ElementsAre("a1", "a2", "b1", "b2"));
}

TEST_F(LiveClusterTest, NodesHaveTheBillingUnitsOfTheirPartition) {
  for (SlurmNode& node : view.nodes) {
    node.cpus = 64;
    node.memory_mb = 64 * 1024;
  }
  view.partitions[1].billing_weights = "CPU=0.5,Mem=0.25G,GRES/gpu:big=10";
  view.partitions[1].memory_per_cpu_mb = 512;
  EXPECT_EQ(live_cluster(view, site, wishes).snapshot.nodes[0].billing_units, 0);  // they have no price
  site.usd_per_unit_hour = 0.1;
  site.default_zone.spot = true;
  LiveCluster cluster = live_cluster(view, site, wishes);
  EXPECT_EQ(cluster.snapshot.usd_per_unit_hour, 0.1);
  EXPECT_DOUBLE_EQ(cluster.snapshot.nodes[0].billing_units, 32 + 8 + 40);
  EXPECT_DOUBLE_EQ(cluster.snapshot.nodes[2].billing_units, 64);
  EXPECT_TRUE(cluster.snapshot.nodes[0].spot);
  EXPECT_TRUE(cluster.snapshot.nodes[0].shared);
  view.partitions[1].memory_per_cpu_mb = 0;
  view.largest_weight_counts = true;
  EXPECT_DOUBLE_EQ(live_cluster(view, site, wishes).snapshot.nodes[0].billing_units, 40);
}

TEST_F(LiveClusterTest, IdleGpuNodesAreOfferedWithTheirOwnPartitionNotTheUmbrella) {
  LiveCluster cluster = live_cluster(view, site, wishes);
  ASSERT_EQ(cluster.snapshot.nodes.size(), 4u);
  EXPECT_EQ(cluster.snapshot.nodes[0].partition, "fast");
  EXPECT_EQ(cluster.snapshot.nodes[0].gpu_type, "BIG-40");
  EXPECT_THAT(cluster.snapshot.nodes[0].free_gpus, ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(cluster.snapshot.nodes[2].gpu_type, "small");
  EXPECT_EQ(cluster.snapshot.nodes[2].host.gres, "gpu:small");
  EXPECT_EQ(cluster.partitions.back().name, "all");
  EXPECT_THAT(cluster.snapshot.not_free, IsEmpty());
}

TEST_F(LiveClusterTest, NodesInABadStateAreNotFree) {
  const std::pair<uint32_t, const char*> states[] = {
      {NODE_STATE_DOWN, "down"},
      {NODE_STATE_IDLE | NODE_STATE_DRAIN, "drained"},
      {NODE_STATE_IDLE | NODE_STATE_FAIL, "failing"},
      {NODE_STATE_IDLE | NODE_STATE_NO_RESPOND, "not responding"},
      {NODE_STATE_IDLE | NODE_STATE_RES, "reserved"},
      {NODE_STATE_IDLE | NODE_STATE_MAINT, "in maintenance"},
      {NODE_STATE_IDLE | NODE_STATE_POWERED_DOWN, "powered down or powering"},
      {NODE_STATE_IDLE | NODE_STATE_POWERING_UP, "powered down or powering"},
      {NODE_STATE_IDLE | NODE_STATE_REBOOT_REQUESTED, "rebooting"},
      {NODE_STATE_IDLE | NODE_STATE_PLANNED, "planned for another job"},
      {NODE_STATE_IDLE | NODE_STATE_COMPLETING, "completing a job"},
      {NODE_STATE_UNKNOWN, "in an unknown state"},
  };
  for (const auto& [state, expected] : states) {
    view.nodes[0].state = state;
    EXPECT_EQ(reason("a1"), expected) << "state " << state;
    EXPECT_THAT(offered(), ElementsAre("a2", "b1", "b2")) << "state " << state;
  }
}

TEST_F(LiveClusterTest, PartlyUsedNodesAreOfferedWithWhatIsLeft) {
  SlurmNode& node = view.nodes[0];
  node.state = NODE_STATE_ALLOCATED;
  node.gres_used = "gpu:big:1(IDX:2)";
  node.allocated_cpus = 34;
  node.allocated_memory_mb = 60'000;
  LiveCluster cluster = live_cluster(view, site, wishes);
  const SnapshotNode& entry = cluster.snapshot.nodes[0];
  EXPECT_EQ(entry.name, "a1");
  EXPECT_TRUE(entry.shared);
  EXPECT_EQ(entry.gpus, 4);
  EXPECT_THAT(entry.free_gpus, ElementsAre(0, 1, 2)) << "as the job's steps number them";
  EXPECT_EQ(entry.host.cpus, 3 * 10) << "a GPU's share of the node would be 16";
  EXPECT_EQ(entry.host.memory_bytes, int64_t{4000} << 20);
  EXPECT_EQ(cluster.snapshot.nodes[1].host.cpus, 64);
  wishes.cpus_per_rank = 12;
  EXPECT_THAT(live_cluster(view, site, wishes).snapshot.nodes[0].free_gpus, ElementsAre(0, 1));
  wishes.include_busy = true;
  EXPECT_THAT(live_cluster(view, site, wishes).snapshot.nodes[0].free_gpus, ElementsAre(0, 1, 2, 3));
}

TEST_F(LiveClusterTest, NodesOfWhichNothingIsLeftAreNotFree) {
  view.nodes[0].gres_used = "gpu:big:4(IDX:0-3)";
  view.nodes[1].allocated_cpus = 64;
  view.nodes[2].of_another_user = true;
  EXPECT_EQ(reason("a1"), "4 of 4 GPUs in use");
  EXPECT_EQ(reason("a2"), "64 of 64 CPUs in use");
  EXPECT_EQ(reason("b1"), "runs jobs of a user who shares it with nobody");
  wishes.cpus_per_rank = 33;
  view.nodes[1].allocated_cpus = 32;
  EXPECT_EQ(reason("a2"), "32 of 64 CPUs in use");
  EXPECT_EQ(use_by_others(view.nodes[1], {false, {{"gpu:big", 2}}, 32, 64'000}), std::nullopt);
  view.nodes[1].allocated_memory_mb = 1;
  EXPECT_EQ(use_by_others(view.nodes[1], {false, {{"gpu:big", 2}}, 32, 64'000}),
            "1 of 64000 MB of memory in use");
}

TEST_F(LiveClusterTest, WhereJobsTakeWholeNodesPartlyUsedOnesAreNotFree) {
  view.nodes[0].gres_used = "gpu:big:1(IDX:2)";
  view.nodes[1].allocated_cpus = 3;
  const auto check = [this](const char* who) {
    EXPECT_EQ(reason("a1"), "1 of 4 GPUs in use") << who;
    EXPECT_EQ(reason("a2"), "runs another job") << who;
    EXPECT_THAT(offered(), ElementsAre("b1", "b2")) << who;
  };
  view.partitions[1].whole_nodes = true;
  check("the partition");
  EXPECT_TRUE(live_cluster(view, site, wishes).snapshot.nodes[0].shared) << "of another partition";
  view.partitions[1].whole_nodes = false;
  wishes.whole_nodes = true;
  check("the user");
  wishes.whole_nodes = false;
  site.whole_nodes = true;
  check("the site");
  EXPECT_FALSE(live_cluster(view, site, wishes).snapshot.nodes[0].shared);
}

TEST_F(LiveClusterTest, AnIdleNodeThatAJobWaitsForIsNotFree) {
  view.nodes[0].promised_to = 17;
  EXPECT_THAT(offered(), ElementsAre("a2", "b1", "b2"));
  EXPECT_EQ(reason("a1"), "job 17 waits for it");
  wishes.include_busy = true;
  EXPECT_THAT(offered(), ElementsAre("a1", "a2", "b1", "b2"));
}

TEST_F(LiveClusterTest, ANodePlannedForAWithdrawnJobIsFree) {
  view.nodes[0].state = NODE_STATE_IDLE | NODE_STATE_PLANNED;
  view.nodes[1].state = NODE_STATE_MIXED | NODE_STATE_PLANNED;
  view.nodes[1].gres_used = "gpu:big:4(IDX:0-3)";
  view.nodes[2].state = NODE_STATE_IDLE | NODE_STATE_PLANNED;
  forget_planned(view.nodes, {"a1", "a2", "gone"});
  EXPECT_THAT(offered(), ElementsAre("a1", "b2"));
  EXPECT_EQ(reason("a2"), "4 of 4 GPUs in use");
  EXPECT_EQ(reason("b1"), "planned for another job");
  EXPECT_EQ(use_by_others(view.nodes[0], {}), std::nullopt);
}

TEST_F(LiveClusterTest, BusyNodesAreOfferedToAJobThatWaitsForThem) {
  view.nodes[0].gres_used = "gpu:big:4(IDX:0-3)";
  view.nodes[0].state = NODE_STATE_ALLOCATED;
  view.nodes[1].state = NODE_STATE_IDLE | NODE_STATE_DRAIN;
  wishes.include_busy = true;
  EXPECT_THAT(offered(), ElementsAre("a1", "b1", "b2"));
}

TEST_F(LiveClusterTest, NodesThatOnlyHaveToBeWaitedForAreBusy) {
  view.nodes[0].gres_used = "gpu:big:4(IDX:0-3)";
  view.nodes[0].jobs_end = view.now + 900;
  view.nodes[0].leaf_switch = "s1";
  view.nodes[1].gres_used = "gpu:big:4(IDX:0-3)";
  view.nodes[1].jobs_end = view.now + 60;
  view.nodes[1].promised_to = 17;
  view.nodes[2].state = NODE_STATE_IDLE | NODE_STATE_POWERED_DOWN;
  view.nodes[3].state = NODE_STATE_ALLOCATED | NODE_STATE_DRAIN;
  LiveCluster cluster = live_cluster(view, site, wishes);
  EXPECT_THAT(cluster.snapshot.nodes, IsEmpty());
  EXPECT_EQ(cluster.snapshot.not_free.size(), 4u);
  ASSERT_EQ(cluster.snapshot.busy.size(), 3u);
  const BusyNode& first = cluster.snapshot.busy[0];
  EXPECT_EQ(first.node.name, "a1");
  EXPECT_EQ(first.node.gpu_type, "BIG-40");
  EXPECT_THAT(first.node.free_gpus, ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(first.node.leaf_switch, "s1");
  EXPECT_EQ(first.state, "in use");
  EXPECT_EQ(first.free_in_s, 900);
  EXPECT_EQ(cluster.snapshot.busy[1].free_in_s, std::nullopt) << "job 17 takes it next";
  EXPECT_EQ(cluster.snapshot.busy[1].jobs_end_in_s, 60);
  EXPECT_EQ(first.jobs_end_in_s, std::nullopt);
  EXPECT_EQ(cluster.snapshot.busy[2].state, "powered down");
  EXPECT_EQ(cluster.snapshot.busy[2].jobs_end_in_s, std::nullopt);
  view.nodes[1].gres_used = "";
  EXPECT_EQ(live_cluster(view, site, wishes).snapshot.busy[1].jobs_end_in_s, 0) << "idle, though promised";
  wishes.excluded_nodes = {"a1"};
  EXPECT_EQ(live_cluster(view, site, wishes).snapshot.busy.size(), 2u);
  wishes.include_busy = true;  // then they are on offer
  cluster = live_cluster(view, site, wishes);
  EXPECT_THAT(cluster.snapshot.busy, IsEmpty());
  EXPECT_EQ(cluster.snapshot.nodes.size(), 2u);
}

TEST_F(LiveClusterTest, BusyNodesBeyondWhatThePartitionGivesAJobAreOfNoUse) {
  view.partitions = {partition("fast", {"a1", "a2"}), partition("slow", {"b1", "b2"})};
  view.partitions[0].max_nodes = 1;
  for (size_t i : {0u, 1u}) {
    view.nodes[i].allocated_cpus = 64;
    view.nodes[i].jobs_end = view.now + 900 - 100 * static_cast<int64_t>(i);
  }
  LiveCluster cluster = live_cluster(view, site, wishes);
  ASSERT_EQ(cluster.snapshot.busy.size(), 1u);
  EXPECT_EQ(cluster.snapshot.busy[0].node.name, "a2") << "the first to come free";
}

TEST_F(LiveClusterTest, LeafSwitchesAreHandedOn) {
  view.nodes[1].leaf_switch = "s2";
  LiveCluster cluster = live_cluster(view, site, wishes);
  EXPECT_EQ(cluster.snapshot.find("a1")->leaf_switch, "");
  EXPECT_EQ(cluster.snapshot.find("a2")->leaf_switch, "s2");
}

TEST_F(LiveClusterTest, OnlyWishedPartitionsAreOffered) {
  wishes.partitions = {"slow"};
  EXPECT_THAT(offered(), ElementsAre("b1", "b2"));
  EXPECT_EQ(reason("a1"), "not in partition slow");
  wishes.partitions = {"all"};
  EXPECT_EQ(live_cluster(view, site, wishes).snapshot.nodes[0].partition, "all");
}

TEST_F(LiveClusterTest, AnUnknownPartitionIsAnErrorThatNamesTheNearest) {
  wishes.partitions = {"slwo"};
  try {
    live_cluster(view, site, wishes);
    FAIL() << "accepted";
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("did you mean \"slow\""));
  }
}

TEST_F(LiveClusterTest, PartitionsThatAreDownOrRestrictedAreLeftOut) {
  view.partitions[0].up = false;
  view.partitions[1].up = false;
  view.partitions[2].root_only = true;
  EXPECT_THAT(offered(), IsEmpty());
  EXPECT_THAT(reason("a1"), HasSubstr("is not up"));
}

TEST_F(LiveClusterTest, PartitionsTooShortForTheJobAreLeftOut) {
  view.partitions = {partition("fast", {"a1", "a2"}), partition("slow", {"b1", "b2"})};
  view.partitions[0].max_time_s = 600;
  wishes.time_limit_s = 601;
  EXPECT_THAT(offered(), ElementsAre("b1", "b2"));
  wishes.time_limit_s = 600;
  EXPECT_THAT(offered(), ElementsAre("a1", "a2", "b1", "b2"));
}

TEST_F(LiveClusterTest, NoMoreNodesThanThePartitionAllowsPerJob) {
  view.partitions = {partition("fast", {"a1", "a2"}), partition("slow", {"b1", "b2"})};
  view.partitions[0].max_nodes = 1;
  EXPECT_THAT(offered(), ElementsAre("a1", "b1", "b2"));
  EXPECT_EQ(reason("a2"), "partition fast allows 1 nodes per job");
}

TEST_F(LiveClusterTest, AReservationToComeBlocksOnlyJobsThatWouldReachIt) {
  view.reservations = {{"maintenance", view.now + 3600, view.now + 7200, {"a1"}, ""}};
  wishes.time_limit_s = 3000;
  EXPECT_THAT(offered(), ElementsAre("a1", "a2", "b1", "b2"));
  wishes.time_limit_s = 4000;
  EXPECT_EQ(reason("a1"), "reserved by maintenance");
  view.now += 7200;  // over
  view.reservations[0].start -= 0;
  EXPECT_THAT(offered(), ElementsAre("a1", "a2", "b1", "b2"));
}

TEST_F(LiveClusterTest, ExcludedNodesAreNotOffered) {
  wishes.excluded_nodes = {"a2", "b1"};
  EXPECT_THAT(offered(), ElementsAre("a1", "b2"));
}

TEST_F(LiveClusterTest, GpuTypesSideBySideAndMigSlicesAreEntriesOfTheirOwn) {
  site.gres["a100_1g.10gb"] = "SLICE-10";
  view.nodes[0].gres = "gpu:big:2(S:0),gpu:a100_1g.10gb:7(S:0-1)";
  view.nodes[0].gres_used = "gpu:big:0(IDX:N/A),gpu:a100_1g.10gb:3(IDX:2-4)";
  const Snapshot snapshot = live_cluster(view, site, wishes).snapshot;
  ASSERT_EQ(snapshot.nodes.size(), 5u);
  EXPECT_THAT(snapshot.find("a1", "BIG-40")->free_gpus, ElementsAre(0, 1));
  const SnapshotNode* slices = snapshot.find("a1", "SLICE-10");
  ASSERT_NE(slices, nullptr);
  EXPECT_THAT(slices->free_gpus, ElementsAre(2, 3, 4, 5));
  EXPECT_EQ(slices->host.gres, "gpu:a100_1g.10gb");
  EXPECT_EQ(slices->host.cpus, 4 * 7) << "64 processors for 9 GPUs";
  EXPECT_EQ(snapshot.find("a1", "other"), nullptr);
  const Snapshot read = parse_snapshot(to_yaml(snapshot), "written");
  EXPECT_EQ(to_yaml(read), to_yaml(snapshot));
}

TEST_F(LiveClusterTest, TheDefaultPartitionComesFirstUnlessOthersAreRequested) {
  view.partitions = {partition("debug", {"a1", "a2"}), partition("all", {"a1", "a2", "b1", "b2"}),
                     partition("main", {"a1", "a2", "b1"})};
  view.partitions[2].is_default = true;
  LiveCluster cluster = live_cluster(view, site, wishes);
  EXPECT_EQ(cluster.partitions.front().name, "main");
  EXPECT_EQ(cluster.partitions.back().name, "all");
  EXPECT_EQ(cluster.snapshot.find("a1")->partition, "main");
  EXPECT_EQ(cluster.snapshot.find("b2")->partition, "all");
  wishes.partitions = {"main", "debug"};
  EXPECT_EQ(live_cluster(view, site, wishes).snapshot.find("a1")->partition, "debug");
}

TEST_F(LiveClusterTest, TheFirstZoneRuleThatNamesPartitionOrFeatureDecides) {
  site.default_zone = {"z0", "r0", {}, {}};
  site.zones = {{"z1", "r1", {}, {"rack7"}}, {"z2", "r1", {"fast"}, {}}};
  view.nodes[1].features = {"rack7"};
  LiveCluster cluster = live_cluster(view, site, wishes);
  EXPECT_EQ(cluster.snapshot.find("a1")->zone, "z2");
  EXPECT_EQ(cluster.snapshot.find("a2")->zone, "z1");
  EXPECT_EQ(cluster.snapshot.find("b1")->zone, "z0");
  EXPECT_EQ(cluster.snapshot.find("b1")->region, "r0");
}

TEST_F(LiveClusterTest, OnlyTheNodesThatTheUserNames) {
  wishes.only_nodes = {"a2", "b1"};
  EXPECT_THAT(offered(), ElementsAre("a2", "b1"));
  EXPECT_EQ(reason("a1"), "not in --nodelist");
  wishes.only_nodes = {"a2", "typo"};
  EXPECT_THROW(offered(), InputError);
}

TEST_F(LiveClusterTest, OnlyNodesWithTheFeatures) {
  view.nodes[1].features = {"rack7", "fast"};
  view.nodes[2].features = {"rack7"};
  wishes.features = "rack7";
  EXPECT_THAT(offered(), ElementsAre("a2", "b1"));
  wishes.features = "rack7&fast";
  EXPECT_THAT(offered(), ElementsAre("a2"));
  EXPECT_EQ(reason("b1"), "has not the features of --constraint");
  view.nodes.clear();  // even then
  wishes.features = "rack7&";
  EXPECT_THROW(offered(), InputError);
}

TEST_F(LiveClusterTest, AReservationOffersItsOwnNodesAndOpensItsPartition) {
  view.nodes[0].state |= NODE_STATE_RES;
  view.nodes[2].state |= NODE_STATE_RES | NODE_STATE_MAINT;
  view.partitions[1].needs_reservation = true;
  view.partitions.erase(view.partitions.begin());  // the umbrella would open it
  view.reservations = {{"mine", view.now - 10, view.now + 5000, {"a1", "b1"}, ""}};
  EXPECT_THAT(offered(), ElementsAre("b2"));
  wishes.reservation = "mine";
  EXPECT_THAT(offered(), ElementsAre("a1", "b1"));
  EXPECT_EQ(reason("b2"), "not in reservation mine");
  view.reservations[0].partition = "fast";
  EXPECT_THAT(offered(), ElementsAre("a1"));
  view.reservations.push_back({"other", view.now + 100, view.now + 200, {"a1"}, ""});
  EXPECT_EQ(reason("a1"), "reserved by other");
  wishes.reservation = "mien";
  try {
    offered();
    FAIL() << "accepted";
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("did you mean \"mine\""));
  }
}

TEST_F(LiveClusterTest, AReservationToComeIsForJobsThatWait) {
  view.reservations = {{"later", view.now + 600, view.now + 5000, {"a1"}, ""}};
  wishes.reservation = "later";
  EXPECT_THROW(offered(), InputError);
  wishes.include_busy = true;
  EXPECT_THAT(offered(), ElementsAre("a1"));
  wishes.include_busy = false;
  view.reservations[0] = {"later", view.now - 600, view.now - 1, {"a1"}, ""};
  EXPECT_THROW(offered(), InputError);
}

TEST_F(LiveClusterTest, PartitionsThatRefuseTheAccountOrQosAreLeftOut) {
  view.partitions = {partition("fast", {"a1", "a2"}), partition("slow", {"b1", "b2"})};
  view.partitions[0].allowed_accounts = {"physics"};
  view.partitions[1].denied_qos = {"low"};
  EXPECT_THAT(offered(), ElementsAre("a1", "a2", "b1", "b2"));  // nothing said: Slurm decides
  wishes.account = "biology";
  EXPECT_THAT(offered(), ElementsAre("b1", "b2"));
  EXPECT_EQ(reason("a1"), "partition fast is not open to account biology");
  wishes.account = "physics";
  wishes.qos = "low";
  EXPECT_THAT(offered(), ElementsAre("a1", "a2"));
}

TEST_F(LiveClusterTest, PoweredDownNodesAreOfferedToAJobThatWaitsForThem) {
  view.nodes[0].state = NODE_STATE_IDLE | NODE_STATE_CLOUD | NODE_STATE_POWERED_DOWN;
  EXPECT_EQ(reason("a1"), "powered down or powering");
  wishes.include_busy = true;
  EXPECT_THAT(offered(), ElementsAre("a1", "a2", "b1", "b2"));
}

TEST_F(LiveClusterTest, FreePartsChangeWithWhatIsFree) {
  const std::string idle = free_parts(view.nodes);
  SlurmNode& a1 = view.nodes[0];
  a1.state = NODE_STATE_MIXED;
  a1.allocated_cpus = 1;
  const std::string mixed = free_parts(view.nodes);
  EXPECT_NE(mixed, idle) << "its GPUs are free";
  a1.gres_used = a1.gres;
  const std::string used = free_parts(view.nodes);
  EXPECT_NE(used, mixed);
  a1.allocated_cpus = 2;
  EXPECT_EQ(free_parts(view.nodes), used) << "of a full node nothing counts";
  view.nodes[1].state |= NODE_STATE_DRAIN;
  EXPECT_NE(free_parts(view.nodes), used);
}

TEST_F(LiveClusterTest, WhatAJobHoldsThatEndsIsFree) {
  for (SlurmNode& node : view.nodes) {
    if (node.name != "a1" && node.name != "b1") continue;
    node.state = NODE_STATE_ALLOCATED | NODE_STATE_COMPLETING;
    node.allocated_cpus = 8;
    node.gres_used = node.gres + "(IDX:0-1)";
  }
  const std::string gres = view.nodes[0].gres;
  forget_job(view.nodes, {{"a1", {8, 0, gres + "(IDX:0-1)"}}, {"gone", {8, 0, gres}}});
  EXPECT_THAT(offered(), testing::UnorderedElementsAre("a1", "a2", "b2"));
  for (SlurmNode& node : view.nodes)
    if (node.name == "a2") node.state = NODE_STATE_IDLE | NODE_STATE_DRAIN;
  forget_job(view.nodes, {{"a2", {8, 0, gres}}});
  EXPECT_EQ(reason("a2"), "drained");
}

TEST_F(LiveClusterTest, WhatOthersHoldOfItsNodesIsNot) {
  SlurmNode& node = view.nodes[0];
  node.state = NODE_STATE_MIXED;
  node.gres = "gpu:x:4";
  node.gres_used = "gpu:x:3(IDX:0-2)";
  node.allocated_cpus = 6;
  node.allocated_memory_mb = 3000;
  forget_job(view.nodes, {{node.name, {4, 2000, "gpu:x:2(IDX:0-1)"}}});
  EXPECT_EQ(node.gres_used, "gpu:x:1");
  EXPECT_EQ(node.allocated_cpus, 2);
  EXPECT_EQ(node.allocated_memory_mb, 1000);
  EXPECT_EQ(node.state & NODE_STATE_BASE, static_cast<uint32_t>(NODE_STATE_MIXED));
}

}  // namespace
}  // namespace sailor
