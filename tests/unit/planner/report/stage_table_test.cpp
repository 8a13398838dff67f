#include "planner/report/stage_table.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "tests/unit/planner/instance.h"

namespace sailor {
namespace {

using ::testing::HasSubstr;

test::Instance two_small_types(int blocks = 4) {
  test::Instance in = test::empty_instance(blocks, 16);
  in.add_type("fast", 0.01, 400'000'000, 4);
  in.add_type("slow", 0.03, 400'000'000, 1);
  return in;
}

std::vector<std::string> rows(const std::string& table) {
  std::vector<std::string> lines;
  std::istringstream in(table);
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with("iteration ")) {
      EXPECT_LE(line.size(), 120u) << line;
    }
    lines.push_back(line);
  }
  return lines;
}

TEST(StageTable, HasARowPerStageAndTheSum) {
  const test::Instance in = two_small_types();
  const Plan plan = test::make_plan(in, 1, {{{0, 3, "fast", 1}, {3, 6, "slow", 1}}});
  const std::vector<std::string> table = rows(stage_table(plan, simulate(in.context(), plan)));
  ASSERT_EQ(table.size(), 4u);
  EXPECT_THAT(table[1], HasSubstr("0-2"));
  EXPECT_THAT(table[3], HasSubstr("iteration "));
}

TEST(StageTable, EqualStagesOfEqualPipelinesAreOneRow) {
  const test::Instance in = two_small_types(14);
  std::vector<test::StageSpec> stages = {{0, 2, "fast", 2}};
  for (int i = 2; i < 14; i += 2) stages.push_back({i, i + 2, "fast", 2});
  stages.push_back({14, 16, "slow", 2});
  Plan plan = test::make_plan(in, 1, {stages, stages});
  for (size_t j = 0; j < 2; ++j)
    for (size_t i = 0; i < stages.size(); ++i) {
      plan.pipelines[j].stages[i].node = fmt::format("node{}", (j * stages.size() + i) / 4);
      plan.pipelines[j].stages[i].gpus = {static_cast<int>(i % 4 * 2), static_cast<int>(i % 4 * 2) + 1};
    }
  Prediction prediction = simulate(in.context(), plan);
  const std::vector<std::string> table = rows(stage_table(plan, prediction));
  ASSERT_EQ(table.size(), 5u);
  EXPECT_THAT(table[1], ::testing::MatchesRegex("0-1 +0 +8 0-1 +fast +2 node0,node2 +4 GPUs .*"));
  EXPECT_THAT(table[2], ::testing::MatchesRegex("0-1 +1-6 +8 2 each +fast +2 4 nodes +24 GPUs .*"));
  EXPECT_THAT(table[3], ::testing::MatchesRegex("0-1 +7 +8 14-15 +slow .*"));
  int64_t most = 0;
  for (size_t i = 1; i < 7; ++i) most = std::max(most, prediction.stages[i].memory.total());
  EXPECT_THAT(table[2], HasSubstr(fmt::format(" {:.2f}/", static_cast<double>(most) / (1 << 30))));
  // What differs stands apart.
  plan.pipelines[0].stages[3].recompute = plan.pipelines[1].stages[3].recompute = Recompute::full;
  EXPECT_EQ(rows(stage_table(plan, simulate(in.context(), plan))).size(), 7u);
}

TEST(StageTable, UnlikeMicrobatchesHaveTheirSize) {
  const test::Instance in = two_small_types();
  Plan plan = test::make_plan(in, 2, {{{0, 6, "fast", 1}}, {{0, 6, "slow", 1}}});
  plan.pipelines[1].microbatches = 8;
  plan.pipelines[1].microbatch = 1;
  const std::vector<std::string> table = rows(stage_table(plan, simulate(in.context(), plan)));
  EXPECT_THAT(table[1], ::testing::MatchesRegex("0 +0 +4x2 0-5 +fast .*"));
  EXPECT_THAT(table[2], ::testing::MatchesRegex("1 +0 +8x1 0-5 +slow .*"));
}

TEST(StageTable, SaysHowMuchOfTheLayerTimesIsEstimated) {
  test::Instance in = two_small_types();
  const Plan plan = test::make_plan(in, 1, {{{0, 3, "fast", 1}, {3, 6, "slow", 1}}});
  EXPECT_EQ(rows(stage_table(plan, simulate(in.context(), plan))).size(), 4u) << "all was measured";
  LayerProfile& slow = in.profiles.layers.at("slow");
  slow.uncertainty = 0.2;
  slow.estimated.insert({2, {1}});
  EXPECT_EQ(rows(stage_table(plan, simulate(in.context(), plan))).size(), 4u) << "of another microbatch";
  slow.estimated.insert({1, {1}});
  Prediction prediction = simulate(in.context(), plan);
  prediction.stages[0].forward_s = prediction.stages[0].backward_s = 1;
  prediction.stages[1].forward_s = 1;
  prediction.stages[1].backward_s = 2;
  EXPECT_THAT(rows(stage_table(plan, prediction)).back(),
              "~ estimated: 60 % of the layer times of this plan were not measured (+-20 %)");
  prediction.stages[0].estimated = true;
  EXPECT_THAT(rows(stage_table(plan, prediction)).back(),
              "~ estimated: layer times were not measured (+-20 %)");
}

TEST(StageTable, ShowsRecomputationAndInterleaving) {
  const test::Instance in = two_small_types();
  Plan plan = test::make_plan(in, 1, {{{0, 3, "fast", 1}, {3, 6, "slow", 1}}});
  EXPECT_EQ(stage_table(plan, simulate(in.context(), plan)).find("RECOMP"), std::string::npos);
  plan.pipelines[0].stages[1].recompute = Recompute::full;
  const std::vector<std::string> table = rows(stage_table(plan, simulate(in.context(), plan)));
  EXPECT_THAT(table[0], ::testing::EndsWith("  RECOMP"));
  EXPECT_THAT(table[1], ::testing::EndsWith("  -"));
  EXPECT_THAT(table[2], ::testing::EndsWith("  full"));

  Plan interleaved =
      test::make_plan(in, 1, {{{0, 2, "fast", 1}, {2, 3, "slow", 1}, {3, 5, "fast", 1}, {5, 6, "slow", 1}}});
  interleaved.interleave = 2;
  EXPECT_THAT(stage_table(interleaved, simulate(in.context(), interleaved)),
              HasSubstr("interleaved: 2 chunks on each GPU, stage i + 2 is on the GPUs of stage i\n"));
}

}  // namespace
}  // namespace sailor
