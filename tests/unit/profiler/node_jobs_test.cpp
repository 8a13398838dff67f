#include "profiler/node_jobs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/scheduler/simulated_scheduler.h"

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

TEST(NodeJobs, OneWhollyFreeNodeOfEachTypeAndOneForAllThatAreEmulatedAlike) {
  Snapshot snapshot;
  snapshot.nodes = {node("b2", "big", 4, 4),       node("b1", "big", 4, 3),    node("b3", "big", 4, 4),
                    node("s1", "slow", 2, 2),      node("r1", "slower", 2, 2), node("o1", "old", 2, 1),
                    node("x1", "unheard-of", 2, 2)};
  std::vector<std::string> notes;
  const std::vector<NodeJob> jobs = one_node_of_each_type(snapshot, catalog(), notes);
  ASSERT_EQ(jobs.size(), 2u);
  EXPECT_EQ(jobs[0].gpu_type, "big");
  EXPECT_EQ(jobs[0].node, "b2") << "b1 is busy in part";
  EXPECT_EQ(jobs[0].partition, "p-big");
  EXPECT_EQ(jobs[0].gpus, 4) << "which its job requests, or it would not see them";
  EXPECT_EQ(jobs[1].gpu_type, "cpu");
  EXPECT_EQ(jobs[1].node, "r1");
  EXPECT_EQ(jobs[1].gpus, 0) << "emulated";
  EXPECT_THAT(notes, testing::ElementsAre("type old: no node is free"));
}

struct JobsOnNodes : testing::Test {
  SimulatedCluster cluster{
      {.nodes = {{.name = "b1"}, {.name = "s1"}},
       .partitions = {{.name = "p-big", .nodes = {"b1"}}, {.name = "p-slow", .nodes = {"s1"}}}}};
  SimulatedScheduler scheduler{cluster};
  std::vector<std::string> lines;

  int run(const std::vector<std::string>& command) {
    return run_node_jobs(scheduler, {{"big", "b1", "p-big"}, {"slow", "s1", "p-slow"}}, command,
                         [this](const std::string& line) { lines.push_back(line); });
  }
};

TEST_F(JobsOnNodes, EveryNodeMeasuresItsTypeInAJobOfItsOwn) {
  EXPECT_EQ(run({"true", "job.yaml"}), 0);
  EXPECT_THAT(lines, testing::IsEmpty());
  ASSERT_EQ(scheduler.steps().size(), 2u);
  const SimulatedScheduler::Step& last = scheduler.steps().rbegin()->second;
  EXPECT_EQ(last.node, "s1");
  EXPECT_THAT(last.command, testing::ElementsAre("true", "job.yaml", "--gpu-type", "slow"));
  for (const QueuedJob& job : cluster.jobs()) EXPECT_EQ(job.state, JobState::completed);
}

TEST_F(JobsOnNodes, FailuresAreCountedAndTold) {
  EXPECT_EQ(run({"false"}), 2);
  EXPECT_THAT(lines, testing::UnorderedElementsAre("b1: type big: ended with exit code 1",
                                                   "s1: type slow: ended with exit code 1"));
}

}  // namespace
}  // namespace sailor
