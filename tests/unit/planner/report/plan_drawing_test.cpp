#include "planner/report/plan_drawing.h"

#include <gtest/gtest.h>

#include <sstream>

#include "tests/unit/planner/instance.h"

namespace sailor {
namespace {

test::Instance long_names(int blocks) {
  test::Instance in = test::empty_instance(blocks, 16);
  in.add_type("fast", 0.01, 4'000'000'000, 4);
  in.add_type("a-type-with-a-very-long-name-indeed", 0.03, 4'000'000'000, 1);
  return in;
}

std::vector<test::StageSpec> one_layer_each(int stages, const std::string& type) {
  std::vector<test::StageSpec> out;
  for (int i = 0; i < stages; ++i) out.push_back({i, i + 1, type, 1});
  return out;
}

void expect_narrow(const std::string& drawing) {
  std::istringstream lines(drawing);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 100u) << line;
}

TEST(PlanDrawing, DrawsPipelinesThatAreAlikeOnce) {
  const test::Instance in = long_names(4);
  const Plan plan = test::make_plan(
      in, 1,
      {{{0, 3, "fast", 2}, {3, 6, "fast", 1}}, {{0, 3, "fast", 2}, {3, 6, "fast", 1}}, {{0, 6, "fast", 1}}});
  const Prediction prediction = simulate(in.context(), plan);
  const std::vector<DrawnPipeline> drawn = drawn_pipelines(plan, prediction);
  // 16 microbatches: 6, 5, 5.
  ASSERT_EQ(drawn.size(), 3u);
  EXPECT_EQ(drawn[0].name, "pipeline 0");
  EXPECT_EQ(drawn[0].work, "6 microbatches");
  ASSERT_EQ(drawn[0].stages.size(), 2u);
  EXPECT_EQ(drawn[0].stages[0].gpus, "fast x2");
  EXPECT_EQ(drawn[0].stages[1].layers, "layers 3-5");
  EXPECT_NEAR(drawn[0].stages[0].busy_part, prediction.stages[0].busy_fraction, 1e-12);
  expect_narrow(plan_drawing(plan, prediction));
}

TEST(PlanDrawing, ManyStagesThatAreAlikeAreOneBox) {
  const test::Instance in = long_names(14);
  const Plan plan = test::make_plan(in, 1, {one_layer_each(16, "fast")});
  const std::vector<DrawnPipeline> drawn = drawn_pipelines(plan, simulate(in.context(), plan));
  ASSERT_EQ(drawn.at(0).stages.size(), 1u);
  EXPECT_EQ(drawn[0].stages[0].name, "stages 0-15");
  EXPECT_EQ(drawn[0].stages[0].layers, "1 layer each");
}

TEST(PlanDrawing, StagesThatRecomputeSayIt) {
  const test::Instance in = long_names(14);
  Plan plan = test::make_plan(in, 1, {one_layer_each(16, "fast")});
  EXPECT_EQ(plan_drawing(plan, simulate(in.context(), plan)).find("recomputes"), std::string::npos);
  for (size_t i = 0; i < 4; ++i) plan.pipelines[0].stages[i].recompute = Recompute::full;
  const Prediction prediction = simulate(in.context(), plan);
  const std::vector<DrawnPipeline> drawn = drawn_pipelines(plan, prediction);
  ASSERT_EQ(drawn.at(0).stages.size(), 2u);
  EXPECT_EQ(drawn[0].stages[0].name, "stages 0-3");
  EXPECT_EQ(drawn[0].stages[0].recompute, "recomputes");
  EXPECT_EQ(drawn[0].stages[1].recompute, "");
  EXPECT_NE(plan_drawing(plan, prediction).find("| recomputes "), std::string::npos);
}

TEST(PlanDrawing, UnlikeMicrobatchesHaveTheirSize) {
  const test::Instance in = long_names(4);
  Plan plan = test::make_plan(in, 1, {{{0, 6, "fast", 1}}, {{0, 6, "fast", 1}}});
  plan.pipelines[1].microbatches = 4;
  plan.pipelines[1].microbatch = 2;
  const std::vector<DrawnPipeline> drawn = drawn_pipelines(plan, simulate(in.context(), plan));
  ASSERT_EQ(drawn.size(), 2u);
  EXPECT_EQ(drawn[0].work, "8 microbatches of 1");
  EXPECT_EQ(drawn[1].work, "4 microbatches of 2");
  EXPECT_EQ(drawn[1].microbatch, 2);
  // As many of them make no pipelines alike.
  plan.pipelines[1].microbatches = 8;
  EXPECT_EQ(drawn_pipelines(plan, simulate(in.context(), plan)).size(), 2u);
}

TEST(PlanDrawing, LeavesOutTheMiddleOfWidePlansAndCountsIt) {
  const test::Instance in = long_names(14);
  std::vector<test::StageSpec> stages = one_layer_each(16, "fast");
  for (size_t i = 0; i < stages.size(); i += 2) stages[i].type = "a-type-with-a-very-long-name-indeed";
  const Plan plan = test::make_plan(in, 1, {stages});
  const std::string drawing = plan_drawing(plan, simulate(in.context(), plan));
  expect_narrow(drawing);
  EXPECT_NE(drawing.find("14 more"), std::string::npos) << drawing;
  EXPECT_NE(drawing.find("stage 0"), std::string::npos) << drawing;
  EXPECT_NE(drawing.find("stage 15"), std::string::npos) << drawing;
}

TEST(PlanDrawing, CountsKindsOfPipelinesBeyondTheFirst) {
  test::Instance in = long_names(10);
  std::vector<std::vector<test::StageSpec>> pipelines;
  for (int cut = 1; cut < 12; ++cut) pipelines.push_back({{0, cut, "fast", 1}, {cut, 12, "fast", 1}});
  const Plan plan = test::make_plan(in, 1, pipelines);
  EXPECT_NE(plan_drawing(plan, simulate(in.context(), plan)).find("and 3 more kinds of pipelines"),
            std::string::npos);
}

}  // namespace
}  // namespace sailor
