#include "planner/simulator/mesh_replay.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/unit/planner/instance.h"

namespace sailor::native {
namespace {

using Members = std::vector<MeshSums::Member>;

// Pipelines by the end layers of their stages.
Plan plan_of(const std::vector<std::vector<int>>& pipelines) {
  Plan plan;
  for (const std::vector<int>& ends : pipelines) {
    PlanPipeline pipeline;
    for (const int end : ends) {
      PlanStage stage;
      stage.first_layer = pipeline.stages.empty() ? 0 : pipeline.stages.back().end_layer;
      stage.end_layer = end;
      pipeline.stages.push_back(stage);
    }
    plan.pipelines.push_back(pipeline);
  }
  return plan;
}

// Two pipelines of one stage, every rank on a node of its own: a bucket per layer, whose phases take
// `phases_s` (from the last layer down).
MeshSums layer_by_layer(const std::vector<double>& phases_s, double processor_s = 0) {
  MeshSums sums;
  sums.nodes = 2;
  sums.processor_s = {processor_s};
  for (size_t i = 0; i < phases_s.size(); ++i)
    sums.buckets.push_back(
        {0, static_cast<int>(phases_s.size() - 1 - i), 0, {{0, phases_s[i], 0}, {1, 0, 0}}});
  return sums;
}

TEST(MeshReplay, TheLowestBucketIsLeftWhenTheBackwardEnds) {
  const Plan plan = plan_of({{3}, {3}});
  const std::vector<LastBackward> last = {{10, {1, 1, 1}}};
  const auto replay = [&](const std::vector<double>& phases_s, MeshOptions options = {}) {
    return replay_mesh(plan, layer_groups(plan), layer_by_layer(phases_s), {last, last}, {{10}, {10}},
                       options);
  };
  // A second per layer: each is summed while the next one is computed.
  const MeshEnds equal = replay({0.5, 0.5, 0.5});
  EXPECT_DOUBLE_EQ(equal.end_s[0][0], 11);
  EXPECT_DOUBLE_EQ(equal.of_group_s[0], 1);
  // The lowest is nearly all of it.
  EXPECT_DOUBLE_EQ(replay({0.01, 0.01, 2}).end_s[1][0], 10 + 2 * 2);
  // Slow sums queue up behind the first, of which two seconds hide.
  EXPECT_DOUBLE_EQ(replay({5, 5, 5}).end_s[0][0], 8 + 30);
  EXPECT_DOUBLE_EQ(replay({5, 5, 5}).of_group_s[0], 30 - 2);
  // Nothing hides where sums wait for the whole backward; a sharded optimizer needs the parts only.
  EXPECT_DOUBLE_EQ(replay({5, 5, 5}, {.overlapped = false, .sharded = false}).end_s[0][0], 10 + 30);
  EXPECT_DOUBLE_EQ(replay({5, 5, 5}, {.overlapped = false, .sharded = true}).end_s[0][0], 10 + 15);
}

TEST(MeshReplay, SumsWaitForTheSlowestReplicaAndDoNotHideTheProcessorsWork) {
  const Plan plan = plan_of({{2}, {2}});
  MeshSums sums = layer_by_layer({0.5, 0.5}, 1);
  for (MeshSums::Bucket& bucket : sums.buckets) bucket.latency_s = 0.25;
  const MeshEnds ends =
      replay_mesh(plan, layer_groups(plan), sums, {{{10, {1, 1}}}, {{20, {1, 1}}}}, {{10}, {20}}, {});
  // The upper bucket has all parts at 19.25, as the first rank's have long been sent, and its sums at 20.
  EXPECT_DOUBLE_EQ(ends.end_s[0][0], 20 + 0.75 + 0.75 + 1);
  EXPECT_DOUBLE_EQ(ends.end_s[1][0], ends.end_s[0][0]);
}

TEST(MeshReplay, ARankSumsItsUpperLayersFirst) {
  // Layers 0 | 1 are held by different pairs of stages; the first pipeline has both.
  const Plan plan = plan_of({{2}, {1, 2}});
  MeshSums sums;
  sums.nodes = 3;
  sums.processor_s = {0, 0};
  sums.buckets = {{1, 1, 0, Members{{0, 2.5, 0}, {1, 2.5, 0}}}, {0, 0, 0, Members{{0, 2, 0}, {2, 2, 0}}}};
  const MeshEnds ends = replay_mesh(plan, layer_groups(plan), sums, {{{10, {1, 1}}}, {{10, {1}}, {6, {1}}}},
                                    {{10}, {10, 6}}, {});
  EXPECT_DOUBLE_EQ(ends.end_s[1][1], 9 + 5);
  EXPECT_DOUBLE_EQ(ends.end_s[1][0], 14 + 4);
  EXPECT_DOUBLE_EQ(ends.end_s[0][0], 18);
  EXPECT_DOUBLE_EQ(ends.of_group_s[0], 4);  // it waits for the other group until 14
}

// Two pipelines of two stages with a layer each. The first stages of both are on node 0, or on nodes of their
// own; a phase keeps a rank's port for a second, and its node's card as well.
MeshSums two_stages(bool on_one_node) {
  MeshSums sums;
  sums.nodes = 4;
  sums.processor_s = {0, 0};
  const int low = on_one_node ? 0 : 3;
  sums.buckets = {{1, 1, 0, Members{{0, 1, 1}, {1, 1, 1}}}, {0, 0, 0, Members{{low, 1, 1}, {2, 1, 1}}}};
  return sums;
}

// When all sums end. Both pipelines' backwards of the lower and upper layer end at these times.
double end_of_two_stages_s(bool on_one_node, double lower_s, double upper_s, double late_upper_s) {
  const Plan plan = plan_of({{1, 2}, {1, 2}});
  const std::vector<LastBackward> last = {{lower_s, {1}}, {upper_s, {1}}};
  const std::vector<LastBackward> late = {{lower_s, {1}}, {late_upper_s, {1}}};
  const MeshEnds ends = replay_mesh(plan, layer_groups(plan), two_stages(on_one_node), {last, late},
                                    {{lower_s, upper_s}, {lower_s, late_upper_s}}, {});
  double last_s = 0;
  for (const auto& of_pipeline : ends.end_s)
    for (const double end_s : of_pipeline) last_s = std::max(last_s, end_s);
  return last_s;
}

TEST(MeshReplay, RanksOfANodeShareItsCard) {
  EXPECT_DOUBLE_EQ(end_of_two_stages_s(false, 10, 10, 10), 10 + 2);
  // Four seconds of messages on one card.
  EXPECT_DOUBLE_EQ(end_of_two_stages_s(true, 10, 10, 10), 10 + 4);
}

TEST(MeshReplay, ACardServesWhoeverHasArrived) {
  // The lower layer's backward ends three seconds later: the upper one's sum is over by then.
  EXPECT_DOUBLE_EQ(end_of_two_stages_s(true, 13, 10, 10), 13 + 2);
  // Half of it is over.
  EXPECT_DOUBLE_EQ(end_of_two_stages_s(true, 11, 10, 10), 10 + 4);
  // A replica of the upper layer is late: the card sums the lower one meanwhile.
  EXPECT_DOUBLE_EQ(end_of_two_stages_s(true, 13, 10, 30), 30 + 2);
}

TEST(MeshSums, NeighbouringLayersShareABucketUntilItIsFull) {
  test::Instance in = test::empty_instance(4, 8);
  in.add_type("fast", 0.02, int64_t{1} << 40, 3.6, {1}, {1, 2});
  in.add_node("f", "fast", 4);
  in.profiles.network = {};
  in.profiles.network.add(
      {{"", "", 0}, {"", "", 0}, NetworkProfile::Scope::any, LinkCurve::from_rates(1e-3, 1e9, 2e9)});
  Plan plan = test::make_plan(in, 1, {{{0, 3, "fast", 1}, {3, 6, "fast", 1}}, {{0, 6, "fast", 1}}});
  plan.pipelines[0].stages[0].node = plan.pipelines[1].stages[0].node = "f";
  plan.pipelines[0].stages[1].node = "g";
  const MeshSums sums = mesh_sums(in.context(), plan, layer_groups(plan));
  // Layers of 4 MB, so two to a bucket of 4 MiB, but none across the cut.
  std::vector<int> first_layers;
  for (const MeshSums::Bucket& bucket : sums.buckets) first_layers.push_back(bucket.first_layer);
  EXPECT_EQ(first_layers, (std::vector<int>{4, 3, 1, 0}));
  EXPECT_EQ(sums.nodes, 2);
  // Half of 8 MB to the other one, between nodes and within one.
  EXPECT_NEAR(sums.buckets[0].members[0].port_s, 4e6 / 1e9, 1e-12);
  EXPECT_NEAR(sums.buckets[0].members[0].card_s, 4e6 / 2e9, 1e-12);
  EXPECT_NEAR(sums.buckets[1].members[1].card_s, 2e6 / 2e9, 1e-12);
  EXPECT_DOUBLE_EQ(sums.buckets[2].members[0].card_s, 0);
  EXPECT_NE(sums.buckets[0].members[0].node, sums.buckets[0].members[1].node);
  EXPECT_EQ(sums.buckets[2].members[0].node, sums.buckets[2].members[1].node);
  EXPECT_DOUBLE_EQ(sums.buckets[0].latency_s, 2e-3);  // two pieces
}

}  // namespace
}  // namespace sailor::native
