#include "planner/replay/surviving_state.h"

#include <gtest/gtest.h>

#include <vector>

namespace sailor {
namespace {

PlanStage placed_stage(int first, int end, const std::string& node, std::vector<int> gpus) {
  PlanStage s;
  s.first_layer = first;
  s.end_layer = end;
  s.shape.tp = static_cast<int>(gpus.size());
  s.node = node;
  s.gpus = std::move(gpus);
  return s;
}

// Pipelines 2,1 and 1: the layers 0 to 3 in halves on a, the rest on b; all of them on c.
Plan placed_plan() {
  Plan plan;
  plan.pipelines = {{1, {placed_stage(0, 4, "a", {0, 1}), placed_stage(4, 6, "b", {0})}},
                    {1, {placed_stage(0, 6, "c", {3})}}};
  return plan;
}

TEST(SurvivingState, AnotherPipelineHasWhatIsLost) {
  EXPECT_TRUE(holds_whole_state(placed_plan(), {}));
  EXPECT_TRUE(holds_whole_state(placed_plan(), {{"a", 0}, {"a", 1}, {"b", 0}}));
  EXPECT_TRUE(holds_whole_state(placed_plan(), {{"c", 3}}));
}

TEST(SurvivingState, WhatNobodyHasIsLost) {
  EXPECT_FALSE(holds_whole_state(placed_plan(), {{"a", 1}, {"c", 3}})) << "half of the first layers";
  EXPECT_FALSE(holds_whole_state(placed_plan(), {{"b", 0}, {"c", 3}})) << "the last layers";
}

TEST(SurvivingState, HalvesOfDifferentPipelinesAreAWhole) {
  Plan halves;
  halves.pipelines = {{1, {placed_stage(0, 6, "a", {0, 1})}}, {1, {placed_stage(0, 6, "b", {0, 1})}}};
  EXPECT_TRUE(holds_whole_state(halves, {{"a", 0}, {"b", 1}}));
  EXPECT_FALSE(holds_whole_state(halves, {{"a", 0}, {"b", 0}}));
}

TEST(SurvivingState, ShardedOptimizersAreHeldOnce) {
  Plan sharded = placed_plan();
  sharded.zero = Zero::optimizer;
  EXPECT_TRUE(holds_whole_state(sharded, {{"a", 2}})) << "not a GPU of the plan";
  EXPECT_FALSE(holds_whole_state(sharded, {{"c", 3}}));
}

TEST(SurvivingState, AnotherGroupOfPipelinesHasACopyOfShardedStates) {
  Plan grouped;
  for (const char* node : {"a", "b"})
    for (const int gpu : {0, 1}) grouped.pipelines.push_back({1, {placed_stage(0, 6, node, {gpu})}});
  grouped.zero = Zero::parameters;
  EXPECT_FALSE(holds_whole_state(grouped, {{"a", 0}}));
  grouped.zero_group = 2;
  EXPECT_TRUE(holds_whole_state(grouped, {{"a", 0}, {"a", 1}}));
  EXPECT_TRUE(holds_whole_state(grouped, {{"a", 0}, {"b", 1}})) << "each half is held once";
  EXPECT_FALSE(holds_whole_state(grouped, {{"a", 0}, {"b", 0}})) << "the same half";
}

}  // namespace
}  // namespace sailor
