// Choosing at most N nodes: every mix of kinds once, without distinguishing equal nodes.
#include "spank_plugin/node_choice.h"

#include <gmock/gmock.h>

#include <map>
#include <set>

namespace sailor {
namespace {

Snapshot snapshot(const std::map<std::string, int>& nodes_by_type) {
  Snapshot result;
  for (const auto& [type, count] : nodes_by_type) {
    for (int i = 0; i < count; ++i) {
      SnapshotNode node;
      node.name = type + std::to_string(i);
      node.gpu_type = type;
      node.zone = "z";
      node.free_gpus = {0, 1};
      result.nodes.push_back(node);
    }
  }
  return result;
}

// How many nodes of each type a choice has.
std::map<std::string, int> mix(const Snapshot& choice) {
  std::map<std::string, int> counts;
  std::set<std::string> names;
  for (const SnapshotNode& node : choice.nodes) {
    ++counts[node.gpu_type];
    EXPECT_TRUE(names.insert(node.name).second) << node.name << " twice";
  }
  return counts;
}

TEST(NodeChoice, EveryMixOfKindsOnce) {
  NodeChoices choices = choose_nodes(snapshot({{"x", 2}, {"y", 3}, {"w", 1}}), 3);
  std::set<std::map<std::string, int>> mixes;
  for (const Snapshot& choice : choices.snapshots) {
    EXPECT_EQ(choice.nodes.size(), 3u);
    EXPECT_TRUE(mixes.insert(mix(choice)).second);
  }
  // w 0: x+y = 3 in (0,3) (1,2) (2,1); w 1: x+y = 2 in (0,2) (1,1) (2,0).
  EXPECT_EQ(mixes.size(), 6u);
  EXPECT_TRUE(choices.complete);
}

TEST(NodeChoice, AllNodesWhenTheLimitIsNone) {
  NodeChoices choices = choose_nodes(snapshot({{"x", 2}, {"y", 3}}), 9);
  ASSERT_EQ(choices.snapshots.size(), 1u);
  EXPECT_EQ(choices.snapshots[0].nodes.size(), 5u);
}

TEST(NodeChoice, ManyKindsAreTakenInBunchesAndSaidSo) {
  NodeChoices choices = choose_nodes(snapshot({{"a", 40}, {"b", 40}, {"c", 40}, {"d", 40}}), 80, 64);
  EXPECT_FALSE(choices.complete);
  EXPECT_LE(choices.snapshots.size(), 64u);
  EXPECT_GE(choices.snapshots.size(), 8u);
  for (const Snapshot& choice : choices.snapshots) EXPECT_EQ(choice.nodes.size(), 80u);
}

SearchResult result(double iteration_s, double bound_s) {
  SearchResult found;
  found.status = SearchStatus::found;
  found.candidates.resize(1);
  found.candidates[0].plan.model = std::to_string(iteration_s);
  found.candidates[0].prediction.iteration_s = iteration_s;
  found.bound_iteration_s = bound_s;
  found.stats.complete = true;
  found.stats.plans_scored = 5;
  return found;
}

TEST(NodeChoice, TheFasterResultIsBetterAndTheLowerBoundHoldsForBoth) {
  for (bool turned : {false, true}) {
    SearchResult a = result(2, 1.5), b = result(3, 1);
    SearchResult best = better_of(turned ? b : a, turned ? a : b, Objective::throughput);
    EXPECT_EQ(best.candidates[0].prediction.iteration_s, 2);
    EXPECT_EQ(best.bound_iteration_s, 1);
    EXPECT_EQ(best.stats.plans_scored, 10);
  }
}

TEST(NodeChoice, AChoiceWithoutPlansLeavesTheOthersBound) {
  SearchResult none;
  none.stats.complete = true;
  EXPECT_EQ(better_of(result(2, 1.5), none, Objective::throughput).bound_iteration_s, 1.5);
  SearchResult late;
  late.status = SearchStatus::time_limit;
  EXPECT_EQ(better_of(result(2, 1.5), late, Objective::throughput).bound_iteration_s, std::nullopt);
  EXPECT_EQ(better_of(none, late, Objective::throughput).status, SearchStatus::time_limit);
}

}  // namespace
}  // namespace sailor
