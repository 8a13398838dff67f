#include "profiler/cluster_runs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sailor {
namespace {

SnapshotNode node(const std::string& name, const std::string& type, int gpus, int free) {
  SnapshotNode n;
  n.name = name;
  n.partition = "p-" + type;
  n.zone = n.region = "z";
  n.gpu_type = type;
  n.gpus = gpus;
  for (int i = 0; i < free; ++i) n.free_gpus.push_back(i);
  return n;
}

Catalog catalog() {
  return parse_catalog(
      "sailor_catalog: 1\n"
      "gpu_types:\n"
      "  big: {memory: 1GiB}\n"
      "  old: {memory: 1GiB}\n"
      "  slow: {memory: 1GiB, emulate: {profile: cpu, slowdown: 10}}\n"
      "  slower: {memory: 1GiB, emulate: {profile: cpu, slowdown: 20}}\n",
      "catalog.yaml");
}

TEST(ClusterRuns, OneWhollyFreeNodeOfEachTypeAndOneForAllThatAreEmulatedAlike) {
  Snapshot snapshot;
  snapshot.nodes = {node("b2", "big", 4, 4),       node("b1", "big", 4, 3),    node("b3", "big", 4, 4),
                    node("s1", "slow", 2, 2),      node("r1", "slower", 2, 2), node("o1", "old", 2, 1),
                    node("x1", "unheard-of", 2, 2)};
  std::vector<std::string> notes;
  const std::vector<ClusterRun> runs = one_node_of_each_type(snapshot, catalog(), notes);
  ASSERT_EQ(runs.size(), 2u);
  EXPECT_EQ(runs[0].gpu_type, "big");
  EXPECT_EQ(runs[0].node, "b2") << "b1 is busy in part";
  EXPECT_EQ(runs[0].partition, "p-big");
  EXPECT_EQ(runs[1].gpu_type, "cpu");
  EXPECT_EQ(runs[1].node, "r1");
  EXPECT_THAT(notes, testing::ElementsAre("type old: no node is free"));
}

}  // namespace
}  // namespace sailor
