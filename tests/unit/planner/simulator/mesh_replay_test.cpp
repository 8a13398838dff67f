#include "planner/simulator/mesh_replay.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "tests/unit/planner/instance.h"

namespace sailor::native {
namespace {

// A bucket with its members.
struct Bucket {
  int group = 0;
  int first_layer = 0;
  double latency_s = 0;
  std::vector<MeshSums::Member> members;
};

MeshEnds replay(const std::vector<Bucket>& buckets, const std::vector<double>& done_s,
                const std::vector<double>& processor_s, int nodes, bool sharded) {
  MeshSums sums;
  for (const Bucket& bucket : buckets) {
    sums.buckets.push_back({bucket.group, bucket.first_layer, bucket.latency_s,
                            static_cast<uint32_t>(sums.members.size()),
                            static_cast<uint32_t>(bucket.members.size())});
    sums.members.insert(sums.members.end(), bucket.members.begin(), bucket.members.end());
  }
  const MeshEnds ends = replay_mesh(sums, done_s, processor_s, nodes, sharded);
  EXPECT_LE(least_end_s(sums, done_s.size(), nodes, sharded), ends.last_s * (1 + 1e-12));
  EXPECT_TRUE(std::isinf(replay_mesh(sums, done_s, processor_s, nodes, sharded, ends.last_s).last_s));
  return ends;
}

// The first two classes of ranks, each on a node of its own, sum a layer per bucket, from the last layer
// down; a phase takes one of `phases_s`. Their backwards take a second per layer and end at `done_s`.
std::vector<Bucket> layer_by_layer(const std::vector<double>& phases_s, const std::vector<double>& done_s,
                                   bool overlapped = true) {
  std::vector<Bucket> buckets;
  for (size_t i = 0; i < phases_s.size(); ++i) {
    const int layer = static_cast<int>(phases_s.size() - 1 - i);
    const double below_s = overlapped ? layer : 0;
    buckets.push_back(
        {0,
         layer,
         0,
         {{0, 0, 1, phases_s[i], 0, done_s[0] - below_s}, {1, 1, 1, 0, 0, done_s[1] - below_s}}});
  }
  return buckets;
}

TEST(MeshReplay, TheLowestBucketIsLeftWhenTheBackwardEnds) {
  const std::vector<double> done_s = {10, 10}, idle_s = {0, 0};
  const auto end_s = [&](const std::vector<double>& phases_s, bool overlapped = true, bool sharded = false) {
    return replay(layer_by_layer(phases_s, done_s, overlapped), done_s, idle_s, 2, sharded).rank_s;
  };
  // A second per layer: each is summed while the next one is computed.
  EXPECT_DOUBLE_EQ(end_s({0.5, 0.5, 0.5})[0], 11);
  // The lowest is nearly all of it.
  EXPECT_DOUBLE_EQ(end_s({0.01, 0.01, 2})[1], 10 + 2 * 2);
  // Slow sums queue up behind the first, of which two seconds hide.
  EXPECT_DOUBLE_EQ(end_s({5, 5, 5})[0], 8 + 30);
  // Nothing hides where sums wait for the whole backward; a sharded optimizer needs the parts only.
  EXPECT_DOUBLE_EQ(end_s({5, 5, 5}, false)[0], 10 + 30);
  EXPECT_DOUBLE_EQ(end_s({5, 5, 5}, false, true)[0], 10 + 15);
}

TEST(MeshReplay, SumsWaitForTheSlowestReplicaAndDoNotHideTheProcessorsWork) {
  std::vector<Bucket> buckets = layer_by_layer({0.5, 0.5}, {10, 20});
  for (Bucket& bucket : buckets) bucket.latency_s = 0.25;
  const MeshEnds ends = replay(buckets, {10, 20}, {1, 1}, 2, false);
  // The upper bucket has all parts at 19.25, as the first rank's have long been sent, and its sums at 20.
  EXPECT_DOUBLE_EQ(ends.rank_s[0], 20 + 0.75 + 0.75 + 1);
  EXPECT_DOUBLE_EQ(ends.rank_s[1], ends.rank_s[0]);
}

TEST(MeshReplay, ARankSumsItsUpperLayersFirst) {
  // Layers 0 | 1 are held by different pairs of ranks; the first rank has both.
  const std::vector<Bucket> buckets = {{1, 1, 0, {{0, 0, 1, 2.5, 0, 9}, {2, 2, 1, 2.5, 0, 6}}},
                                       {0, 0, 0, {{0, 0, 1, 2, 0, 10}, {1, 1, 1, 2, 0, 10}}}};
  const MeshEnds ends = replay(buckets, {10, 10, 6}, {0, 0, 0}, 3, false);
  EXPECT_DOUBLE_EQ(ends.rank_s[2], 9 + 5);
  EXPECT_DOUBLE_EQ(ends.rank_s[1], 14 + 4);
  EXPECT_DOUBLE_EQ(ends.rank_s[0], 18);
  EXPECT_DOUBLE_EQ(ends.begin_s[1], 14);  // it waits for the other bucket
}

// When all sums end. Two pipelines of two stages with a layer each, backwards of the lower and upper layer
// end at these times. The first pipeline's stages are on node 0 both, or on nodes of their own; a phase keeps
// a rank's port for a second, and its node's card as well.
double end_of_two_stages_s(bool on_one_node, double lower_s, double upper_s, double late_upper_s) {
  const std::vector<Bucket> buckets = {
      {1, 1, 0, {{1, 0, 1, 1, 1, upper_s}, {3, 1, 1, 1, 1, late_upper_s}}},
      {0, 0, 0, {{0, on_one_node ? 0 : 3, 1, 1, 1, lower_s}, {2, 2, 1, 1, 1, lower_s}}}};
  return replay(buckets, {lower_s, upper_s, lower_s, late_upper_s}, {0, 0, 0, 0}, 4, false).last_s;
}

TEST(MeshReplay, RanksOfANodeShareItsCard) {
  EXPECT_DOUBLE_EQ(end_of_two_stages_s(false, 10, 10, 10), 10 + 2);
  // Four seconds of messages on one card.
  EXPECT_DOUBLE_EQ(end_of_two_stages_s(true, 10, 10, 10), 10 + 4);
  // The same where the two are of one class.
  const std::vector<Bucket> buckets = {{0, 0, 0, {{0, 0, 2, 1, 1, 10}}}};
  EXPECT_DOUBLE_EQ(replay(buckets, {10}, {0}, 1, false).last_s, 10 + 4);
}

TEST(MeshReplay, ACardServesWhoeverHasArrived) {
  // The lower layer's backward ends three seconds later: the upper one's sum is over by then.
  EXPECT_DOUBLE_EQ(end_of_two_stages_s(true, 13, 10, 10), 13 + 2);
  // Half of it is over.
  EXPECT_DOUBLE_EQ(end_of_two_stages_s(true, 11, 10, 10), 10 + 4);
  // A replica of the upper layer is late: the card sums the lower one meanwhile.
  EXPECT_DOUBLE_EQ(end_of_two_stages_s(true, 13, 10, 30), 30 + 2);
}

test::Instance linked_instance(const std::vector<int>& tps) {
  test::Instance in = test::empty_instance(4, 8);
  in.add_type("fast", 0.02, int64_t{1} << 40, 3.6, tps, {1, 2});
  in.add_node("f", "fast", 4);
  in.profiles.network = {};
  in.profiles.network.add(
      {{"", "", 0}, {"", "", 0}, NetworkProfile::Scope::any, LinkCurve::from_rates(1e-3, 1e9, 2e9)});
  return in;
}

struct Sums {
  PlanClasses classes;
  MeshSums sums;
};

Sums find_sums(const test::Instance& in, const Plan& plan) {
  const PlanningContext context = in.context();
  StageKinds kinds(context);
  const CompactPlan numbers = compact(plan, kinds);
  Sums out;
  std::vector<LayerGroup> groups;
  find_classes(numbers, kinds, out.classes);
  find_layer_groups(numbers, out.classes, groups);
  find_mesh_sums(numbers, out.classes, groups, kinds, out.sums);
  return out;
}

TEST(MeshSums, NeighbouringLayersShareABucketUntilItIsFull) {
  const test::Instance in = linked_instance({1});
  Plan plan = test::make_plan(in, 1, {{{0, 3, "fast", 1}, {3, 6, "fast", 1}}, {{0, 6, "fast", 1}}});
  plan.pipelines[0].stages[0].node = plan.pipelines[1].stages[0].node = "f";
  plan.pipelines[0].stages[1].node = "g";
  const auto [classes, sums] = find_sums(in, plan);
  // Layers of 4 MB, so two to a bucket of 4 MiB, but none across the cut.
  std::vector<int> first_layers;
  for (const MeshSums::Bucket& bucket : sums.buckets) first_layers.push_back(bucket.first_layer);
  EXPECT_EQ(first_layers, (std::vector<int>{4, 3, 1, 0}));
  EXPECT_EQ(classes.nodes.size(), 2u);
  // Half of 8 MB to the other one, between nodes and within one.
  EXPECT_NEAR(sums.of(sums.buckets[0])[0].port_s, 4e6 / 1e9, 1e-12);
  EXPECT_NEAR(sums.of(sums.buckets[0])[0].card_s, 4e6 / 2e9, 1e-12);
  EXPECT_NEAR(sums.of(sums.buckets[1])[1].card_s, 2e6 / 2e9, 1e-12);
  EXPECT_DOUBLE_EQ(sums.of(sums.buckets[2])[0].card_s, 0);
  EXPECT_NE(sums.of(sums.buckets[0])[0].node, sums.of(sums.buckets[0])[1].node);
  EXPECT_EQ(sums.of(sums.buckets[2])[0].node, sums.of(sums.buckets[2])[1].node);
  EXPECT_DOUBLE_EQ(sums.buckets[0].latency_s, 2e-3);  // two pieces
}

TEST(MeshSums, ARankOfALowTpDegreeSumsItsSharesInTurn) {
  const test::Instance in = linked_instance({1, 2, 4});
  Plan plan = test::make_plan(in, 1, {{{0, 6, "fast", 2}}, {{0, 6, "fast", 4}}});
  for (const Zero zero : {Zero::none, Zero::optimizer}) {
    plan.zero = zero;
    const auto [classes, sums] = find_sums(in, plan);
    const MeshSums::Bucket& bucket = sums.buckets.front();
    const double low_s = sums.of(bucket)[0].port_s, high_s = sums.of(bucket)[1].port_s;
    // Each rank of TP 2 sends its two shares one after the other. A rank of TP 4 has one of them: it sends
    // the parts at once, and the sums in the first or in the second turn.
    EXPECT_NEAR(high_s / low_s, 0.5, 1e-9);
    EXPECT_EQ(sums.of(bucket)[0].turns, 1);
    EXPECT_EQ(sums.of(bucket)[1].turns, 2);
    EXPECT_NEAR(bucket.later_s, low_s / 2, 1e-12);
    EXPECT_NEAR(sums.of(bucket)[1].card_s, sums.of(bucket)[0].card_s, 1e-12);
    // Shares of more than 4 MiB, so two pieces of each.
    EXPECT_DOUBLE_EQ(bucket.latency_s, 2 * 2 * 1e-3);
  }
}

TEST(MeshSums, TheFirstShareOfALowTpDegreeWaitsForTheCardOfAHighOne) {
  const test::Instance in = linked_instance({1, 4});
  Plan plan = test::make_plan(in, 1, {{{0, 6, "fast", 1}}, {{0, 6, "fast", 4}}});
  plan.zero = Zero::optimizer;
  auto [classes, sums] = find_sums(in, plan);
  // Four shares of 6 MB, of which the replicas send each other half. A card serves two ranks at full speed.
  const double message_s = 3e6 / 1e9, first_turn_s = 4 * message_s / 2;
  // The first of its buckets, of five layers in six.
  const auto end_s = [&](size_t buckets, bool sharded) {
    MeshSums part = sums;
    part.buckets.resize(buckets);
    const std::vector<double> idle_s(static_cast<size_t>(classes.ranks()), 0);
    return replay_mesh(part, idle_s, idle_s, static_cast<int>(classes.nodes.size()), sharded).last_s;
  };
  ASSERT_EQ(sums.buckets.size(), 2u);
  const double latency_s = sums.buckets[0].latency_s, all_latency_s = latency_s + sums.buckets[1].latency_s;
  const double share = 5.0 / 6, alone_s = share * (first_turn_s + 3 * message_s) + latency_s;
  EXPECT_NEAR(end_s(1, true), alone_s, 1e-12);
  EXPECT_NEAR(end_s(1, false), alone_s + share * 4 * message_s + latency_s, 1e-12) << "and sums in turn";
  // The ranks of TP 4 that had the first turns send their next parts while the others have theirs: the first
  // turn of the last bucket does not wait for the card.
  EXPECT_NEAR(end_s(2, true),
              share * (first_turn_s + 3 * message_s) + (1 - share) * 4 * message_s + all_latency_s, 1e-12);
  const double first_bucket = 4 * 4.0 * (1 << 20) / 24e6;
  EXPECT_NEAR(sums.gather_s[0] - sums.processor_s[0] / 2,
              4 * message_s + first_bucket * (first_turn_s - message_s) + 4 * 2 * 1e-3, 1e-12);
}

// Groups of two, each on a node of its own.
TEST(MeshSums, HybridZeroSendsItsPartsWithinGroupsAndItsOwnPartToCopies) {
  const test::Instance in = linked_instance({1});
  Plan plan = test::make_plan(
      in, 1, {{{0, 6, "fast", 1}}, {{0, 6, "fast", 1}}, {{0, 6, "fast", 1}}, {{0, 6, "fast", 1}}});
  for (size_t j = 0; j < 4; ++j) plan.pipelines[j].stages[0].node = j < 2 ? "f" : "g";
  plan.zero_group = 2;
  const double bytes = 24e6;
  for (const Zero zero : {Zero::optimizer, Zero::gradients}) {
    plan.zero = zero;
    const auto [classes, sums] = find_sums(in, plan);
    EXPECT_EQ(classes.pipelines.size(), 2u) << "one for each group";
    double port_s = 0, card_s = 0;
    for (const MeshSums::Bucket& bucket : sums.buckets) {
      port_s += sums.of(bucket)[0].port_s;
      card_s += sums.of(bucket)[0].card_s;
    }
    // Half of it to the other one of the group; of the own half, half to the copy, and as much of the sum.
    const double parts_s = bytes / 2 / 1e9, copies_s = bytes / 2 / 1e9, cards_s = bytes / 2 / 2e9;
    if (zero == Zero::optimizer) {
      EXPECT_NEAR(port_s, parts_s + copies_s, 1e-9);
      EXPECT_NEAR(card_s, cards_s, 1e-9);
      EXPECT_TRUE(sums.copies_s.empty());
      continue;
    }
    EXPECT_NEAR(port_s, parts_s, 1e-9) << "in every microbatch";
    EXPECT_EQ(card_s, 0);
    ASSERT_EQ(sums.copies_s.size(), 2u);
    EXPECT_NEAR(sums.copies_s[0], copies_s + 6 * 2 * 1e-3, 1e-9) << "after the rounds, layer by layer";
  }
}

}  // namespace
}  // namespace sailor::native
