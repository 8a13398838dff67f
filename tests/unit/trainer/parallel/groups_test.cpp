#include "trainer/parallel/groups.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <numeric>
#include <random>
#include <set>

namespace sailor {
namespace {

using ::testing::ElementsAre;

// Pipelines as (end layer, TP degree) per stage.
Plan grouped_plan(const std::vector<std::vector<std::pair<int, int>>>& pipelines) {
  Plan plan;
  for (const auto& stages : pipelines) {
    PlanPipeline pipeline;
    int next = 0;
    for (const auto& stage : stages) {
      PlanStage s;
      s.first_layer = next;
      s.end_layer = next = stage.first;
      s.shape.tp = stage.second;
      pipeline.stages.push_back(s);
    }
    plan.pipelines.push_back(pipeline);
  }
  return plan;
}

TEST(GradientGroups, ADegreeOfFourBesideTwoMeetsInSubShardsOfTheirMultiple) {
  const Plan plan = grouped_plan({{{3, 4}}, {{3, 2}}});  // ranks 0-3, 4-5
  const auto groups = gradient_groups(plan, RankLayout(plan));
  ASSERT_EQ(groups.size(), 4u);
  EXPECT_THAT(groups[0].ranks, ElementsAre(0, 4));
  EXPECT_THAT(groups[1].ranks, ElementsAre(1, 4));
  EXPECT_THAT(groups[2].ranks, ElementsAre(2, 5));
  EXPECT_THAT(groups[3].ranks, ElementsAre(3, 5));
}

TEST(GradientGroups, ThreeBesideTwoSplitsSixWays) {
  const Plan plan = grouped_plan({{{3, 3}}, {{3, 2}}});  // ranks 0-2, 3-4
  const auto groups = gradient_groups(plan, RankLayout(plan));
  std::vector<std::vector<int>> owners;
  for (const auto& group : groups) owners.push_back(group.ranks);
  EXPECT_THAT(owners,
              ElementsAre(ElementsAre(0, 3), ElementsAre(1, 3), ElementsAre(1, 4), ElementsAre(2, 4)));
  EXPECT_EQ(groups[0].shards.size(), 6u) << "two of six sub-shards in each of three layers";
}

TEST(GradientGroups, ContextParallelRanksAreOwnersLikeThoseOfOtherPipelines) {
  Plan plan = grouped_plan({{{2, 2}, {3, 1}}, {{3, 1}}});
  plan.pipelines[0].stages[0].shape.cp = 2;  // ranks 0-3, 4, 5
  const auto groups = gradient_groups(plan, RankLayout(plan));
  std::vector<std::vector<int>> owners;
  for (const auto& group : groups) owners.push_back(group.ranks);
  EXPECT_THAT(owners, ElementsAre(ElementsAre(0, 2, 5), ElementsAre(1, 3, 5), ElementsAre(4, 5)));
}

TEST(GradientGroups, OnePipelineNeedsNone) {
  const Plan plan = grouped_plan({{{2, 2}, {4, 1}}});
  EXPECT_TRUE(gradient_groups(plan, RankLayout(plan)).empty());
}

TEST(GradientGroups, ATiedMatrixIsSummedBetweenTheFirstAndTheLastStage) {
  const Plan alone = grouped_plan({{{2, 2}, {3, 1}, {4, 1}}});  // ranks 0-1, 2, 3
  const auto groups = gradient_groups(alone, RankLayout(alone), true);
  ASSERT_EQ(groups.size(), 2u) << "one pipeline, and yet two holders";
  EXPECT_THAT(groups[0].ranks, ElementsAre(0, 3));
  EXPECT_THAT(groups[1].ranks, ElementsAre(1, 3));
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(groups[static_cast<std::size_t>(i)].shards.size(), 1u);
    EXPECT_EQ(groups[static_cast<std::size_t>(i)].shards[0].layer, 4) << "one past the last layer";
    EXPECT_EQ(groups[static_cast<std::size_t>(i)].shards[0].index, i);
  }
  const Plan whole = grouped_plan({{{4, 2}}});
  EXPECT_TRUE(gradient_groups(whole, RankLayout(whole), true).empty()) << "one stage holds the matrix once";

  // Beside a pipeline of one stage: three holders, in sub-shards of 6.
  const Plan mixed = grouped_plan({{{2, 2}, {4, 1}}, {{4, 3}}});  // ranks 0-1, 2, 3-5
  int64_t shards = 0;
  std::set<int> holders;
  for (const GradientGroup& group : gradient_groups(mixed, RankLayout(mixed), true)) {
    for (const SubShard& shard : group.shards) {
      if (shard.layer != 4) continue;
      EXPECT_EQ(shard.count, 6);
      EXPECT_THAT(group.ranks, ElementsAre(shard.index / 3, 2, 3 + shard.index / 2));
      holders.insert(group.ranks.begin(), group.ranks.end());
      ++shards;
    }
  }
  EXPECT_EQ(shards, 6);
  EXPECT_EQ(holders.size(), 6u);
}

TEST(GradientGroups, EveryRowOfEveryReplicaIsSummedExactlyOnceWithTheSameRows) {
  std::mt19937 random(5);
  constexpr int kLayers = 7, kRows = 48;  // of a whole parameter
  for (int trial = 0; trial < 200; ++trial) {
    std::vector<std::vector<std::pair<int, int>>> shape(2 + random() % 3);
    for (auto& stages : shape) {
      std::set<int> ends = {kLayers};
      for (unsigned i = random() % 4; i > 0; --i) ends.insert(1 + static_cast<int>(random() % (kLayers - 1)));
      constexpr int kDegrees[] = {1, 2, 3, 4};
      for (const int end : ends) stages.push_back({end, kDegrees[random() % 4]});
    }
    const Plan plan = grouped_plan(shape);
    const RankLayout layout(plan);
    const auto groups = gradient_groups(plan, layout);

    std::set<std::vector<int>> owner_lists;
    std::map<std::pair<int, int>, int> summed;  // (pipeline, layer) -> rows
    std::map<int, int> replicated;              // layer -> groups that bring the replicated parameters along
    for (const GradientGroup& group : groups) {
      EXPECT_TRUE(owner_lists.insert(group.ranks).second) << "two communicators for one owner list";
      ASSERT_EQ(group.ranks.size(), plan.pipelines.size());
      for (const SubShard& shard : group.shards) {
        std::set<int64_t>
            global_first;  // where the rows are in the whole parameter: the same for every owner
        for (std::size_t p = 0; p < group.ranks.size(); ++p) {
          const RankSlot& slot = layout.slots()[static_cast<std::size_t>(group.ranks[p])];
          ASSERT_EQ(slot.pipeline, static_cast<int>(p));
          ASSERT_EQ(slot.stage, stage_of(plan.pipelines[p], shard.layer));
          const int64_t held = kRows / slot.shape.tp;
          const auto rows = rows_of(shard, slot.tp_rank, slot.shape.tp, held);
          ASSERT_EQ(rows.second, kRows / shard.count);
          global_first.insert(slot.tp_rank * held + rows.first);
          summed[{slot.pipeline, shard.layer}] += static_cast<int>(rows.second);
          if (shard.index == 0) {
            ASSERT_EQ(slot.tp_rank, 0);
          }
        }
        ASSERT_EQ(global_first.size(), 1u);
        replicated[shard.layer] += shard.index == 0;
      }
    }
    for (std::size_t p = 0; p < plan.pipelines.size(); ++p) {
      for (int layer = 0; layer < kLayers; ++layer) ASSERT_EQ((summed[{static_cast<int>(p), layer}]), kRows);
    }
    for (int layer = 0; layer < kLayers; ++layer) ASSERT_EQ(replicated[layer], 1);
  }
}

}  // namespace
}  // namespace sailor
