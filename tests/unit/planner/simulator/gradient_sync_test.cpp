#include "planner/simulator/gradient_sync.h"

#include <gtest/gtest.h>

#include <tuple>

#include "tests/unit/planner/instance.h"

namespace sailor {
namespace {

using test::Instance;

constexpr double kLatency_s = 1e-5, kInside = 100e9, kNetwork = 10e9, kNode = 20e9;

// Four layers of a million parameters; links by rate, inside a node and between nodes.
Instance sync_instance() {
  Instance in = test::empty_instance(2, 8);
  in.add_type("A", 0.02, int64_t{1} << 40, 1);
  in.set_network(LinkCurve::from_rates(0, kInside, 0), LinkCurve::from_rates(kLatency_s, kNetwork, kNode));
  return in;
}

FrameworkStyle one_bucket() {
  FrameworkStyle style;
  style.sync_bucket_bytes = int64_t{1} << 40;
  return style;
}

// Pipelines of two stages; nodes[pipeline][stage].
Plan sync_plan(const Instance& in, const std::vector<std::vector<std::string>>& nodes, int tp) {
  std::vector<std::vector<test::StageSpec>> pipelines(nodes.size(), {{0, 2, "A", tp}, {2, 4, "A", tp}});
  Plan plan = test::make_plan(in, 1, pipelines);
  for (size_t j = 0; j < nodes.size(); ++j)
    for (size_t i = 0; i < 2; ++i) plan.pipelines[j].stages[i].node = nodes[j][i];
  return plan;
}

// What a plan's sums are told of.
struct Asked {
  explicit Asked(const PlanningContext& context, const Plan& plan)
      : kinds(context), compact(native::compact(plan, kinds)) {
    native::find_classes(compact, kinds, classes);
    native::find_layer_groups(compact, classes, groups);
  }

  native::StageKinds kinds;
  native::CompactPlan compact;
  native::PlanClasses classes;
  std::vector<native::LayerGroup> groups;
};

native::SyncTimes times(const Instance& in, const FrameworkStyle& style, const Plan& plan, size_t group = 0) {
  const PlanningContext context{in.job, in.snapshot, in.catalog, in.profiles, style};
  Asked a(context, plan);
  return native::sync_times(a.compact, a.classes, a.groups, a.kinds).at(group);
}

TEST(LayerGroups, AreTheLayersThatTheSameStagesHold) {
  const Instance in = sync_instance();
  const Plan plan =
      test::make_plan(in, 1, {{{0, 1, "A", 1}, {1, 4, "A", 1}}, {{0, 3, "A", 1}, {3, 4, "A", 1}}});
  const PlanningContext context = in.context();
  const std::vector<native::LayerGroup> groups = Asked(context, plan).groups;
  ASSERT_EQ(groups.size(), 3u);
  EXPECT_EQ(groups[0].end_layer, 1);
  EXPECT_EQ(groups[1].first_layer, 1);
  EXPECT_EQ(groups[1].end_layer, 3);
  EXPECT_EQ(groups[1].stage_of, (std::vector<int>{1, 0}));
  EXPECT_EQ(groups[2].stage_of, (std::vector<int>{1, 1}));
}

TEST(GradientSync, OnePipelineHasNothingToSum) {
  const Instance in = sync_instance();
  const native::SyncTimes t = times(in, one_bucket(), sync_plan(in, {{"a", "b"}}, 1));
  EXPECT_EQ(t.reduce_s, 0);
  EXPECT_EQ(t.gather_s, 0);
}

// What two pipelines on a node sum, so do two context-parallel ranks, and both need the same memory.
TEST(GradientSync, ContextParallelRanksSumLikeReplicas) {
  const Instance in = sync_instance();
  Plan one = sync_plan(in, {{"a", "b"}}, 1), two = sync_plan(in, {{"a", "b"}, {"a", "b"}}, 1);
  one.sequence_parallel = true;
  for (PlanStage& stage : one.pipelines[0].stages) stage.shape.cp = 2;
  for (const Zero zero : {Zero::none, Zero::optimizer, Zero::gradients, Zero::parameters}) {
    one.zero = two.zero = zero;
    const native::SyncTimes t = times(in, one_bucket(), one), like = times(in, one_bucket(), two);
    EXPECT_DOUBLE_EQ(t.reduce_s, like.reduce_s);
    EXPECT_DOUBLE_EQ(t.gather_s, like.gather_s);
    const MemoryBreakdown held = simulate(in.context(), one).stages[0].memory,
                          alike = simulate(in.context(), two).stages[0].memory;
    EXPECT_EQ(held.weights_bytes, alike.weights_bytes);
    EXPECT_EQ(held.gradients_bytes, alike.gradients_bytes);
    EXPECT_EQ(held.optimizer_bytes, alike.optimizer_bytes);
    EXPECT_LT(held.activations_bytes, alike.activations_bytes);
  }
}

// On two nodes, one ring for all four: it leaves a node once, over the cards of both GPUs.
TEST(GradientSync, ARingOfContextParallelRanksLeavesANodeOnce) {
  const Instance in = sync_instance();
  Plan plan = sync_plan(in, {{"a", "b"}, {"c", "d"}}, 1);
  plan.sequence_parallel = true;
  for (PlanPipeline& pipeline : plan.pipelines)
    for (PlanStage& stage : pipeline.stages) stage.shape.cp = 2;
  EXPECT_NEAR(times(in, one_bucket(), plan).reduce_s, 2 * ((4 - 1) * 8e6 / 4 / kNode + kLatency_s), 1e-9);
}

TEST(GradientSync, ReplicasOfAStageOnOneNodeNeverLeaveIt) {
  const Instance in = sync_instance();
  const native::SyncTimes t = times(in, one_bucket(), sync_plan(in, {{"a", "b"}, {"a", "b"}}, 1));
  EXPECT_NEAR(t.reduce_s, 2 * (8e6 / 2) / kInside, 1e-15);
}

// A pipeline per node: every stage and every TP rank has a ring of its own, and all leave the node at once.
TEST(GradientSync, RingsShareTheNetworkCardsOfTheirNode) {
  const Instance in = sync_instance();
  const auto seconds = [&](const std::vector<std::vector<std::string>>& nodes, int tp) {
    return times(in, one_bucket(), sync_plan(in, nodes, tp)).reduce_s;
  };
  const auto ring_s = [&](double bytes, double rate) { return 2 * (kLatency_s + bytes / 2 / rate); };
  EXPECT_NEAR(seconds({{"a", "b"}, {"c", "d"}}, 1), ring_s(8e6, kNetwork), 1e-15);
  EXPECT_NEAR(seconds({{"a", "a"}, {"b", "b"}}, 1), ring_s(8e6, kNode / 2), 1e-15);
  EXPECT_NEAR(seconds({{"a", "a"}, {"b", "b"}}, 2), ring_s(4e6, kNode / 4), 1e-15);
  EXPECT_NEAR(seconds({{"a", "b"}, {"c", "d"}}, 4), ring_s(2e6, kNode / 4), 1e-15);
  // One stage's replicas on one node: only the other's rings leave.
  EXPECT_NEAR(seconds({{"a", "a"}, {"b", "a"}}, 1), ring_s(8e6, kNetwork), 1e-15);
}

TEST(GradientSync, APlanThatIsNotPlacedSharesAmongItsTpRanks) {
  const Instance in = sync_instance();
  EXPECT_NEAR(times(in, one_bucket(), sync_plan(in, {{"", ""}, {"", ""}}, 4)).reduce_s,
              2 * (kLatency_s + 1e6 / (kNode / 4)), 1e-15);
}

TEST(GradientSync, EveryBucketPaysItsLatencyAndThereAreNoMoreThanTensors) {
  const Instance in = sync_instance();
  const Plan plan = sync_plan(in, {{"a", "b"}, {"c", "d"}}, 1);
  FrameworkStyle style = one_bucket();
  style.sync_bucket_bytes = 2'000'000;  // four of 8 MB
  EXPECT_NEAR(times(in, style, plan).reduce_s, 2 * (4 * kLatency_s + 4e6 / kNetwork), 1e-15);
  style.sync_bucket_bytes = 1;
  style.tensors_per_layer = 6;  // twelve of two layers
  EXPECT_NEAR(times(in, style, plan).reduce_s, 2 * (12 * kLatency_s + 4e6 / kNetwork), 1e-15);
}

TEST(GradientSync, AShardedOptimizerScattersGradientsAndGathersWeights) {
  Instance in = sync_instance();
  in.job.training.precision = Precision::bf16;
  Plan plan = sync_plan(in, {{"a", "b"}, {"c", "d"}}, 1);
  plan.zero = Zero::optimizer;
  FrameworkStyle style = one_bucket();
  style.sync_bytes = 4;
  const double pass_s = kLatency_s + 4e6 / kNetwork;
  native::SyncTimes t = times(in, style, plan);
  EXPECT_NEAR(t.reduce_s, pass_s, 1e-15);
  EXPECT_NEAR(t.gather_s, kLatency_s + 2e6 / kNetwork, 1e-15);  // 16-bit weights
  style.gathers_by_tensor = true;
  style.tensors_per_layer = 5;
  EXPECT_NEAR(times(in, style, plan).gather_s, 10 * kLatency_s + 2e6 / kNetwork, 1e-15);
  // Without sharding: twice the gradients and nothing afterwards.
  plan.zero = Zero::none;
  t = times(in, style, plan);
  EXPECT_NEAR(t.reduce_s, 2 * pass_s, 1e-15);
  EXPECT_EQ(t.gather_s, 0);
  // A framework that always shards does so whatever the plan says.
  style.zero = Zero::optimizer;
  EXPECT_NEAR(times(in, style, plan).reduce_s, pass_s, 1e-15);
}

TEST(GradientSync, TheSlowdownIsOfSumsBetweenNodes) {
  Instance in = sync_instance();
  in.profiles.layers["A"].overheads.sync_slowdown = 2;
  EXPECT_NEAR(times(in, one_bucket(), sync_plan(in, {{"a", "b"}, {"a", "b"}}, 1)).reduce_s, 2 * 4e6 / kInside,
              1e-15);
  EXPECT_NEAR(times(in, one_bucket(), sync_plan(in, {{"a", "b"}, {"c", "d"}}, 1)).reduce_s,
              2 * 2 * (kLatency_s + 4e6 / kNetwork), 1e-15);
}

TEST(GradientSync, TreesAreTakenWhereTheFrameworkHasThem) {
  Instance in = sync_instance();
  for (auto& [shape, sizes] : in.profiles.sizes.by_shape)
    for (LayerSizes& layer : sizes) layer.parameters = 10;
  std::vector<std::vector<std::string>> nodes;
  for (int j = 0; j < 8; ++j) nodes.push_back({"a" + std::to_string(j), "b" + std::to_string(j)});
  const Plan plan = sync_plan(in, nodes, 1);
  FrameworkStyle style = one_bucket();
  EXPECT_NEAR(times(in, style, plan).reduce_s, 2 * 7 * kLatency_s, 1e-6);
  style.tree_sync = true;
  EXPECT_NEAR(times(in, style, plan).reduce_s, 2 * 3 * kLatency_s, 1e-6);
}

TEST(GradientSync, UnlikeDegreesWaitForTheLargestShard) {
  const Instance in = sync_instance();
  Plan plan = sync_plan(in, {{"a", "b"}, {"c", "d"}}, 4);
  plan.pipelines[1].stages[0].shape.tp = 2;
  EXPECT_NEAR(times(in, one_bucket(), plan).reduce_s, 2 * (kLatency_s + 2e6 / (kNode / 4)), 1e-15);
}

TEST(GradientSync, TransferCostsAreOfTheBytesThatCrossZones) {
  Instance in = sync_instance();
  in.snapshot.egress_usd_per_gb = {{"z1", {{"z2", 0.01}}}, {"z2", {{"z1", 0.02}}}};
  Plan plan = sync_plan(in, {{"a", "b"}, {"c", "d"}}, 2);
  plan.pipelines[1].stages[0].zone = "z2";
  const FrameworkStyle style = one_bucket();
  const PlanningContext context{in.job, in.snapshot, in.catalog, in.profiles, style};
  // 8 MB of the first stage's gradients, half of them twice in each direction.
  Asked a(context, plan);
  PerExpense<Spent> spent;
  native::add_sync_traffic(a.compact, a.classes, a.groups, a.kinds, spent);
  EXPECT_NEAR(spent[Expense::cost].traffic, (0.01 + 0.02) * 8e-3 * 2 / 2, 1e-15);
}

// USD of the first stage's sums, 8 MB of gradients, over pipelines in these zones at 1 USD per GB between
// them.
double usd_of_sums(const FrameworkStyle& style, const std::vector<std::string>& zones,
                   const std::vector<std::string>& nodes, Zero zero = Zero::none, int zero_group = 0) {
  Instance in = sync_instance();
  in.job.training.global_batch = static_cast<int64_t>(zones.size());
  in.job.training.precision = Precision::bf16;
  in.snapshot.egress_usd_per_gb = {{"z1", {{"z2", 1.0}}}, {"z2", {{"z1", 1.0}}}};
  std::vector<std::vector<std::string>> of_stages;
  for (const std::string& node : nodes) of_stages.push_back({node, node});
  Plan plan = sync_plan(in, of_stages, 1);
  plan.zero = zero;
  plan.zero_group = zero_group;
  for (size_t j = 0; j < zones.size(); ++j) plan.pipelines[j].stages[0].zone = zones[j];
  const PlanningContext context{in.job, in.snapshot, in.catalog, in.profiles, style};
  Asked a(context, plan);
  PerExpense<Spent> spent;
  native::add_sync_traffic(a.compact, a.classes, a.groups, a.kinds, spent);
  return spent[Expense::cost].traffic;
}

TEST(GradientSync, ARingCrossesZonesOnceForEachNeighbourInTheOrderOfNodes) {
  FrameworkStyle style = one_bucket();
  style.sync_bytes = 4;
  const double gb = 2e6 * 4 / 1e9;
  // Two crossings, with 2 (R - 1) / R of the gradients on each.
  EXPECT_NEAR(usd_of_sums(style, {"z1", "z1", "z2", "z2"}, {"a", "b", "c", "d"}), 2 * 1.5 * gb, 1e-15);
  EXPECT_NEAR(usd_of_sums(style, {"z1", "z2", "z1", "z2"}, {"a", "b", "c", "d"}), 4 * 1.5 * gb, 1e-15);
  // Nodes are entered once, whatever the order of pipelines.
  EXPECT_NEAR(usd_of_sums(style, {"z1", "z2", "z1", "z2"}, {"a", "b", "a", "b"}), 2 * 1.5 * gb, 1e-15);
  // A sharded optimizer sums once and gathers 16-bit weights.
  EXPECT_NEAR(usd_of_sums(style, {"z1", "z1", "z2", "z2"}, {"a", "b", "c", "d"}, Zero::optimizer),
              2 * 0.75 * (gb + gb / 2), 1e-15);
}

TEST(GradientSync, InAMeshEveryReplicaSendsItsPartsToEveryOther) {
  FrameworkStyle style = one_bucket();
  style.sums = FrameworkStyle::Sums::mesh;
  style.sync_bytes = 4;
  const double gb = 2e6 * 4 / 1e9;
  // 2 x 2 pairs in each direction, with a quarter of the gradients twice.
  EXPECT_NEAR(usd_of_sums(style, {"z1", "z1", "z2", "z2"}, {"a", "b", "c", "d"}), 8 * 2 * gb / 4, 1e-15);
  EXPECT_NEAR(usd_of_sums(style, {"z1", "z2", "z1", "z2"}, {"a", "b", "a", "b"}), 8 * 2 * gb / 4, 1e-15);
  EXPECT_NEAR(usd_of_sums(style, {"z1", "z2", "z2", "z2"}, {"a", "b", "c", "d"}), 6 * 2 * gb / 4, 1e-15);
  EXPECT_NEAR(usd_of_sums(style, {"z1", "z1", "z2", "z2"}, {"a", "b", "c", "d"}, Zero::optimizer),
              8 * (gb + gb / 2) / 4, 1e-15);
  // Of 64 replicas, half in each zone, 16.25 times as much as along a ring.
  std::vector<std::string> zones, nodes;
  for (int j = 0; j < 64; ++j) {
    zones.push_back(j < 32 ? "z1" : "z2");
    nodes.push_back("n" + std::to_string(j));
  }
  const double mesh = usd_of_sums(style, zones, nodes);
  style.sums = FrameworkStyle::Sums::rings;
  EXPECT_NEAR(mesh / usd_of_sums(style, zones, nodes), 2 * 32 * 32 * 2.0 / 64 / (2 * 2 * 63.0 / 64), 1e-9);
}

// The arithmetic of NCCL's tests: all-reduce time = bytes / bus bandwidth * 2 (n - 1) / n, where the bus
// bandwidth is the slowest link's of a rank; https://github.com/NVIDIA/nccl-tests, doc/PERFORMANCE.md.
TEST(GradientSync, SumsOnGpusTakeWhatNcclsBusBandwidthSays) {
  const double link_bytes_per_s = 300e9, card_bytes_per_s = 50e9;
  const FrameworkStyle& style = own_framework(Ranks::gpus);
  for (const auto& [nodes, per_node, cards] :
       {std::tuple{1, 8, 8}, {2, 8, 8}, {4, 8, 1}, {16, 8, 8}, {16, 1, 1}})
    for (double bytes = 1 << 20; bytes <= 8.0 * (1 << 30); bytes *= 4) {
      Instance in = test::empty_instance(1, 2 * nodes * per_node);
      in.add_type("A", 0.02, int64_t{1} << 50, 1);
      in.set_network(LinkCurve::from_rates(0, link_bytes_per_s, 0),
                     LinkCurve::from_rates(0, card_bytes_per_s, cards * card_bytes_per_s));
      for (LayerSizes& layer : in.profiles.sizes.by_shape.at({1})) {
        layer.parameters = static_cast<int64_t>(bytes / 4 / 3);
        layer.tied_parameters = 0;
      }
      Plan plan = test::make_plan(
          in, 1,
          std::vector<std::vector<test::StageSpec>>(static_cast<size_t>(nodes * per_node), {{0, 3, "A", 1}}));
      for (size_t j = 0; j < plan.pipelines.size(); ++j)
        plan.pipelines[j].stages[0].node = "n" + std::to_string(j / static_cast<size_t>(per_node));
      const double n = nodes * per_node;
      const double bus = nodes == 1 ? link_bytes_per_s : std::min(link_bytes_per_s, cards * card_bytes_per_s);
      const double expected_s = bytes / bus * 2 * (n - 1) / n;
      EXPECT_NEAR(times(in, style, plan).reduce_s, expected_s, 0.15 * expected_s)
          << nodes << " x " << per_node << ", " << cards << " cards, " << bytes << " bytes";
    }
}

// NCCL orders its rings by node, whatever the order of the pipelines.
TEST(GradientSync, TheOrderOfPipelinesDoesNotHideLinksInsideANode) {
  Instance in = sync_instance();
  in.set_network(LinkCurve::from_rates(0, 1e9, 0), LinkCurve::from_rates(0, 10e9, 0));
  const auto reduce_s = [&](const std::vector<std::vector<std::string>>& nodes) {
    return times(in, own_framework(Ranks::gpus), sync_plan(in, nodes, 1)).reduce_s;
  };
  EXPECT_DOUBLE_EQ(reduce_s({{"a", "b"}, {"c", "d"}, {"a", "b"}, {"c", "d"}}),
                   reduce_s({{"a", "b"}, {"a", "b"}, {"c", "d"}, {"c", "d"}}));
}

// The backward hides all but the sums of the lowest layer.
TEST(GradientSync, TheLowestBucketIsSummedAfterTheBackward) {
  Instance in = sync_instance();
  FrameworkStyle style = own_framework(Ranks::gpus);
  style.sync_bucket_bytes = 1;
  const Plan plan = sync_plan(in, {{"a", "b"}, {"c", "d"}}, 1);
  const native::SyncTimes two_layers = times(in, style, plan);
  EXPECT_NEAR(two_layers.last_s, two_layers.reduce_s / 2, 1e-9);
  style.sync_bucket_bytes = int64_t{1} << 40;
  const native::SyncTimes one_bucket = times(in, style, plan);
  EXPECT_EQ(one_bucket.last_s, one_bucket.reduce_s);
}

// Two nodes of four: the rings of groups stay on the nodes, and every rank has one of two over its copy.
TEST(GradientSync, HybridZeroSumsOnTheNodeAndThenOverCopies) {
  const double near_bytes_per_s = 10e9, card_bytes_per_s = 1e9, bytes = 4e6;
  Instance in = test::empty_instance(1, 16);
  in.add_type("A", 0.02, int64_t{1} << 50, 1);
  in.set_network(LinkCurve::from_rates(0, near_bytes_per_s, 0),
                 LinkCurve::from_rates(0, card_bytes_per_s, card_bytes_per_s));
  for (LayerSizes& layer : in.profiles.sizes.by_shape.at({1})) {
    layer.parameters = static_cast<int64_t>(bytes / 4 / 3);
    layer.tied_parameters = 0;
  }
  Plan plan = test::make_plan(in, 1, std::vector<std::vector<test::StageSpec>>(8, {{0, 3, "A", 1}}));
  for (size_t j = 0; j < 8; ++j) plan.pipelines[j].stages[0].node = j < 4 ? "n0" : "n1";
  FrameworkStyle style = own_framework(Ranks::gpus);
  style.sync_bucket_bytes = int64_t{1} << 40;
  const double near_s = bytes / near_bytes_per_s * 3 / 4;   // a pass within the node
  const double far_s = 4 * (bytes / 4) / card_bytes_per_s;  // four rings share the card, 2 (2 - 1) / 2 each
  plan.zero_group = 4;
  plan.zero = Zero::optimizer;
  EXPECT_NEAR(times(in, style, plan).reduce_s, near_s + far_s, 0.02 * far_s);
  EXPECT_EQ(times(in, style, plan).copies_s, 0);
  for (const Zero zero : {Zero::gradients, Zero::parameters}) {
    plan.zero = zero;
    const native::SyncTimes grouped = times(in, style, plan);
    EXPECT_NEAR(grouped.reduce_s, near_s, 0.05 * near_s) << "in every microbatch";
    EXPECT_NEAR(grouped.copies_s, far_s, 0.02 * far_s) << "once";
    EXPECT_LT(grouped.gather_s, near_s);
    plan.zero_group = 0;
    const native::SyncTimes whole = times(in, style, plan);
    EXPECT_GT(whole.reduce_s, bytes / card_bytes_per_s * 7 / 8 * 0.99);
    EXPECT_EQ(whole.copies_s, 0);
    plan.zero_group = 4;
  }
  // Groups over both nodes: their rings share the cards.
  plan.pipelines = {plan.pipelines[0], plan.pipelines[4], plan.pipelines[1], plan.pipelines[5],
                    plan.pipelines[2], plan.pipelines[6], plan.pipelines[3], plan.pipelines[7]};
  plan.zero_group = 2;
  const native::SyncTimes crossing = times(in, style, plan);
  EXPECT_NEAR(crossing.reduce_s, 4 * (bytes / 2) / card_bytes_per_s, 0.02);
  EXPECT_NEAR(crossing.copies_s, bytes / 2 / near_bytes_per_s * 2 * 3 / 4, 1e-4);
}

TEST(GradientSync, OfHybridZeroOnlyTheCopiesCrossZones) {
  FrameworkStyle style = one_bucket();
  style.sync_bytes = 4;
  const double gb = 2e6 * 4 / 1e9;
  for (const auto sums : {FrameworkStyle::Sums::rings, FrameworkStyle::Sums::mesh}) {
    style.sums = sums;
    // Each of two ranks exchanges its half with its copy: half of it there, and as much of the sum.
    EXPECT_NEAR(usd_of_sums(style, {"z1", "z1", "z2", "z2"}, {"a", "b", "c", "d"}, Zero::optimizer, 2),
                2 * gb, 1e-15);
    EXPECT_LT(usd_of_sums(style, {"z1", "z1", "z2", "z2"}, {"a", "b", "c", "d"}, Zero::gradients, 2),
              usd_of_sums(style, {"z1", "z1", "z2", "z2"}, {"a", "b", "c", "d"}, Zero::gradients));
  }
}

}  // namespace
}  // namespace sailor
