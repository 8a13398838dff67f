// Which nodes the stages of a plan get: few, whole, and neighbours in the network where that costs nothing.
#include "planner/plan/place.h"

#include <gmock/gmock.h>

#include <set>

namespace sailor {
namespace {

using testing::ElementsAre;

class PlaceTest : public testing::Test {
 protected:
  void add_node(const std::string& name, const std::string& leaf_switch, const std::string& type = "big",
                int gpus = 4) {
    SnapshotNode node;
    node.name = name;
    node.zone = node.region = "z1";
    node.gpu_type = type;
    node.gpus = gpus;
    for (int gpu = 0; gpu < gpus; ++gpu) node.free_gpus.push_back(gpu);
    node.leaf_switch = leaf_switch;
    snapshot.nodes.push_back(node);
  }

  // `pipelines` equal pipelines with a stage of each of these types, TP 4.
  static Plan plan(int pipelines, const std::vector<std::string>& types) {
    Plan plan;
    plan.pipelines.resize(static_cast<size_t>(pipelines));
    for (PlanPipeline& pipeline : plan.pipelines) {
      pipeline.microbatches = 1;
      for (const std::string& type : types) {
        PlanStage stage;
        stage.first_layer = static_cast<int>(pipeline.stages.size());
        stage.end_layer = stage.first_layer + 1;
        stage.gpu_type = type;
        stage.zone = "z1";
        stage.shape.tp = 4;
        pipeline.stages.push_back(stage);
      }
    }
    return plan;
  }

  std::vector<std::string> nodes(Plan plan) {
    place(plan, snapshot);
    std::vector<std::string> nodes;
    for (const PlanPipeline& pipeline : plan.pipelines)
      for (const PlanStage& stage : pipeline.stages) nodes.push_back(stage.node);
    return nodes;
  }

  Snapshot snapshot;
};

TEST_F(PlaceTest, WithoutSwitchesNodesAreTakenByName) {
  for (const char* name : {"a3", "a1", "a4", "a2"}) add_node(name, "");
  EXPECT_THAT(nodes(plan(1, {"big", "big"})), ElementsAre("a1", "a2"));
}

TEST_F(PlaceTest, AllUnderOneSwitchWhereOneHoldsThem) {
  add_node("a1", "s1");
  add_node("a2", "s2");
  add_node("a3", "s1");
  add_node("a4", "s2");
  add_node("a5", "s2");
  EXPECT_THAT(nodes(plan(1, {"big", "big", "big"})), ElementsAre("a2", "a4", "a5")) << "only s2 holds three";
  EXPECT_THAT(nodes(plan(1, {"big", "big"})), ElementsAre("a1", "a3")) << "s1 is the smallest that does";
  EXPECT_THAT(nodes(plan(2, {"big"})), ElementsAre("a1", "a3")) << "replicas of a stage likewise";
}

TEST_F(PlaceTest, WhatNoSwitchHoldsFillsTheLargestFirst) {
  add_node("a1", "s1");
  add_node("a2", "s2");
  add_node("a3", "s1");
  add_node("a4", "s2");
  add_node("a5", "s2");
  EXPECT_THAT(nodes(plan(1, {"big", "big", "big", "big"})), ElementsAre("a2", "a4", "a5", "a1"));
}

TEST_F(PlaceTest, ANeighbourOfAnotherTypeIsBelowTheSameSwitch) {
  add_node("a1", "s2");
  add_node("b1", "s1", "small");
  add_node("b2", "s2", "small");
  EXPECT_THAT(nodes(plan(1, {"big", "small"})), ElementsAre("a1", "b2"));
}

TEST_F(PlaceTest, FewBrokenNodesCountMoreThanASwitch) {
  add_node("a1", "s1", "big", 8);
  add_node("a2", "s2", "big", 4);
  add_node("b1", "s1", "small");
  // a2 is filled whole; a1 would be below the switch of b1, but broken into.
  EXPECT_THAT(nodes(plan(1, {"small", "big"})), ElementsAre("b1", "a2"));
}

TEST_F(PlaceTest, TheOrderOfNodesInTheSnapshotDoesNotMatter) {
  add_node("a1", "s1");
  add_node("a2", "s2");
  add_node("a3", "");
  add_node("a4", "s2");
  add_node("a5", "s1");
  const std::vector<std::string> first = nodes(plan(2, {"big", "big"}));
  EXPECT_EQ(std::set<std::string>(first.begin(), first.end()).count("a3"), 0u) << "on no switch: the last";
  std::reverse(snapshot.nodes.begin(), snapshot.nodes.end());
  EXPECT_EQ(nodes(plan(2, {"big", "big"})), first);
}

}  // namespace
}  // namespace sailor
