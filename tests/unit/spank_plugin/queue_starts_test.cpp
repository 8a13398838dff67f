#include "spank_plugin/slurm/queue_starts.h"

#include <gmock/gmock.h>
#include <slurm/slurm.h>

#include "spank_plugin/slurm/waiting_jobs.h"

namespace sailor {
namespace {

using testing::ElementsAre;

// Partition p has a1 to a4 (4 GPUs x), q has b1 and b2 (2 GPUs y). All are idle.
class QueueStarts : public testing::Test {
 protected:
  QueueStarts() {
    view.now = 1000;
    for (const std::string name : {"a1", "a2", "a3", "a4", "b1", "b2"}) {
      SlurmNode node;
      node.name = name;
      node.state = NODE_STATE_IDLE;
      node.gres = name[0] == 'a' ? "gpu:x:4" : "gpu:y:2";
      node.features = {name};
      view.nodes.push_back(node);
    }
    view.partitions.resize(2);
    view.partitions[0].name = "p";
    view.partitions[0].nodes = {"a1", "a2", "a3", "a4"};
    view.partitions[1].name = "q";
    view.partitions[1].nodes = {"b1", "b2"};
    view.partitions[1].max_time_s = 7200;
  }

  void run_until(const std::string& name, std::optional<int64_t> end) {
    for (SlurmNode& node : view.nodes) {
      if (node.name != name) continue;
      node.state = NODE_STATE_ALLOCATED;
      node.allocated_cpus = 1;
      node.jobs_end = end;
    }
  }
  SlurmWaitingJob& add(uint32_t job, const std::string& partition, int nodes, std::optional<double> limit_s) {
    SlurmWaitingJob waiting;
    waiting.job = job;
    waiting.partition = partition;
    waiting.partitions = {partition};
    waiting.nodes = nodes;
    waiting.limit_s = limit_s;
    waiting.reason = WaitReason::nodes;
    view.queue.push_back(waiting);
    return view.queue.back();
  }
  std::vector<double> waits() const {
    std::vector<double> waits;
    for (const auto& start : queue_starts(view, 200)) waits.push_back(start ? start->wait_s : -1);
    return waits;
  }

  SlurmView view;
};

TEST_F(QueueStarts, JobsStartWhereTheyFitFirstAndSlurmsLateAnswersDoNotCount) {
  run_until("a1", 1100);
  run_until("a2", 1100);
  run_until("a3", 1500);
  run_until("a4", std::nullopt);
  add(1, "p", 2, 60).start = 1500;   // as Slurm says, which looked after the end of a3 only
  add(2, "p", 3, 60).start = 1560;   // needs a3
  add(3, "p", 2, 240).start = 1620;  // fits before it
  add(4, "p", 4, 60);                // a4 has no end
  EXPECT_THAT(waits(), ElementsAre(100, 500, 160, -1));
}

TEST_F(QueueStarts, ComponentsOfAJobStartTogether) {
  run_until("a1", 1100);
  run_until("b1", 1300);
  run_until("b2", 1300);
  add(1, "p", 4, 60);
  add(1, "q", 2, 60);
  add(2, "p", 3, 200);  // before it
  add(3, "q", 1, 60);   // behind it
  EXPECT_THAT(waits(), ElementsAre(300, 300, 0, 360));
}

// Slurm's backfill scheduler rounds the begin of what it plans down.
TEST_F(QueueStarts, AJobDoesNotEndInTheMinuteInWhichOneBeforeItStarts) {
  ASSERT_EQ(view.now % 60, 40);
  run_until("a1", 1300);
  add(1, "p", 4, 60);   // at 1300: its nodes are kept from 1260 on
  add(2, "p", 3, 259);  // ends before
  add(3, "p", 1, 30);
  EXPECT_THAT(waits(), ElementsAre(300, 0, 360));
  view.queue[1].limit_s = 260;
  EXPECT_THAT(waits(), ElementsAre(300, 360, 0));
  view.backfill_resolution_s = 1;
  EXPECT_THAT(waits(), ElementsAre(300, 0, 260));
  EXPECT_THAT(waiting_jobs(view)[0].kept_in_s, testing::Optional(299));
}

TEST(BackfillResolution, IsAMinuteUnlessItIsSet) {
  EXPECT_EQ(backfill_resolution_s(""), 60);
  EXPECT_EQ(backfill_resolution_s("bf_interval=30,bf_resolution=300,bf_continue"), 300);
  EXPECT_EQ(backfill_resolution_s("my_bf_resolution=300,bf_resolution=often"), 60);
}

TEST_F(QueueStarts, WhatSlurmExpectsCountsForJobsThatWaitForMoreThanNodes) {
  SlurmWaitingJob& job = add(1, "p", 2, 60);
  job.reason = WaitReason::other;
  job.start = 1400;
  job.names = {"a2", "a3"};
  add(2, "p", 4, 500);
  EXPECT_THAT(waits(), ElementsAre(400, 460));
  view.queue[0].start.reset();
  EXPECT_THAT(waits(), ElementsAre(-1, 0)) << "nobody knows";
}

TEST_F(QueueStarts, JobsChooseAmongTheNodesThatFitThem) {
  add(1, "p", 1, 60).features = "a3";
  add(2, "p", 1, 60).needs.gpus = {{"gpu:y", 1}};
  add(3, "p", 2, 60).excluded = {"a1"};
  add(4, "p", 1, 60).required = {"a2"};
  add(5, "q", 1, std::nullopt);
  const std::vector<WaitingJob> jobs = waiting_jobs(view);
  EXPECT_THAT(jobs[0].names, ElementsAre("a3"));
  EXPECT_FALSE(jobs[1].start_in_s) << "never";
  EXPECT_THAT(jobs[2].names, ElementsAre("a2", "a4"));
  EXPECT_THAT(jobs[3].names, ElementsAre("a2"));
  EXPECT_EQ(jobs[3].start_in_s, 60);
  EXPECT_EQ(jobs[4].limit_s, 7200);
}

}  // namespace
}  // namespace sailor
