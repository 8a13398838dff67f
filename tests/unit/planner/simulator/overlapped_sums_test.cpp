#include "planner/simulator/overlapped_sums.h"

#include <gtest/gtest.h>

namespace sailor::native {
namespace {

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

TEST(OverlappedSums, TheLowestLayerIsLeftWhenTheBackwardEnds) {
  const Plan plan = plan_of({{3}, {3}});
  const std::vector<LastBackward> last = {{10, {1, 1, 1}}};
  // A second per layer: each is summed while the next one is computed.
  const OverlappedSums equal =
      overlapped_sums(plan, layer_groups(plan), {3}, {0}, {1, 1, 1}, {last, last}, {{10}, {10}});
  EXPECT_DOUBLE_EQ(equal.end_s[0][0], 11);
  EXPECT_DOUBLE_EQ(equal.begin_s[0], 8);
  EXPECT_DOUBLE_EQ(equal.of_group_s[0], 1);
  // The lowest is nearly all of it.
  EXPECT_DOUBLE_EQ(
      overlapped_sums(plan, layer_groups(plan), {3}, {0}, {98, 1, 1}, {last, last}, {{10}, {10}}).end_s[1][0],
      10 + 3 * 0.98);
  // Slow sums queue up behind the first.
  EXPECT_DOUBLE_EQ(
      overlapped_sums(plan, layer_groups(plan), {30}, {0}, {1, 1, 1}, {last, last}, {{10}, {10}}).end_s[0][0],
      8 + 30);
}

TEST(OverlappedSums, WaitForTheSlowestReplicaAndDoNotHideTheProcessorsWork) {
  const Plan plan = plan_of({{2}, {2}});
  const OverlappedSums sums = overlapped_sums(plan, layer_groups(plan), {3}, {1}, {1, 1},
                                              {{{10, {1, 1}}}, {{20, {1, 1}}}}, {{10}, {20}});
  EXPECT_DOUBLE_EQ(sums.end_s[0][0], 20 + 1 + 1);
  EXPECT_DOUBLE_EQ(sums.end_s[1][0], 20 + 1 + 1);
  EXPECT_DOUBLE_EQ(sums.of_group_s[0], 2);
}

TEST(OverlappedSums, ARankSumsItsUpperLayersFirst) {
  // Layers 0 | 1 are held by different pairs of stages; the first pipeline has both.
  const Plan plan = plan_of({{2}, {1, 2}});
  const OverlappedSums sums = overlapped_sums(plan, layer_groups(plan), {4, 5}, {0, 0}, {1, 1},
                                              {{{10, {1, 1}}}, {{10, {1}}, {6, {1}}}}, {{10}, {10, 6}});
  EXPECT_DOUBLE_EQ(sums.end_s[1][1], 9 + 5);
  EXPECT_DOUBLE_EQ(sums.end_s[1][0], 14 + 4);
  EXPECT_DOUBLE_EQ(sums.end_s[0][0], 18);
}

}  // namespace
}  // namespace sailor::native
