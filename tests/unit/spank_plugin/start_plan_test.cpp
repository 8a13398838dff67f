// From a submission on a busy cluster to a plan that starts now or waits. Slurm's answers are made up.
#include "spank_plugin/start_plan.h"

#include <gmock/gmock.h>
#include <slurm/slurm.h>

#include <set>

#include "planner/plan/plan.h"
#include "planner/start/choose_start.h"
#include "spank_plugin/slurm/waiting_jobs.h"

namespace sailor {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const std::string kStartFixtures = SAILOR_SOURCE_DIR "/tests/golden/fixtures/";

class StartPlanTest : public testing::Test {
 protected:
  StartPlanTest() {
    job.training.steps = 10'000;
    options.time_limit_s = 5;
    const Snapshot all = load_snapshot(kStartFixtures + "snapshot.yaml");
    for (const SnapshotNode& node : all.nodes) {
      if (node.name == "q1")
        busy.push_back({node, "in use", 600});
      else
        free.push_back(node);
    }
  }

  // What live_cluster() makes of wishes.
  LiveCluster cluster(const NodeWishes& wishes) const {
    LiveCluster live;
    live.now = kNow;
    live.snapshot.time_s = kNow;
    live.snapshot.nodes = free;
    live.snapshot.queue = queue;
    for (const BusyNode& node : busy) {
      if (wishes.include_busy)
        live.snapshot.nodes.push_back(node.node);
      else
        live.snapshot.busy.push_back(node);
    }
    if (!wishes.only_nodes.empty()) {
      const std::set<std::string> only(wishes.only_nodes.begin(), wishes.only_nodes.end());
      std::erase_if(live.snapshot.nodes, [&](const SnapshotNode& node) { return !only.contains(node.name); });
    }
    live.partitions = {{"all", {}, {}}};
    for (SnapshotNode& node : live.snapshot.nodes) {
      live.partitions[0].nodes.push_back(node.name);
      node.host.gres = "gpu";
    }
    return live;
  }

  PlannedJob plan() {
    return plan_with_start(
        options, job, load_site_config(kStartFixtures + "sailor.yaml"), wishes, 86400,
        [this](const NodeWishes& of) { return cluster(of); },
        [this](const std::string&, const std::vector<std::string>& among, size_t count,
               std::optional<double> limit_s) -> std::optional<int64_t> {
          EXPECT_LE(count, among.size());
          asked_limit_s = limit_s;
          ++questions;
          if (!answer_s) return std::nullopt;
          return kNow + *answer_s;
        });
  }

  static constexpr int64_t kNow = 1'700'049'600;  // 2023-11-15 12:00 UTC
  JobSpec job = load_job_spec(kStartFixtures + "job.yaml");
  SubmitOptions options;
  NodeWishes wishes;
  std::vector<SnapshotNode> free;
  std::vector<BusyNode> busy;
  std::vector<WaitingJob> queue;
  std::optional<int64_t> answer_s = 600;
  std::optional<double> asked_limit_s;
  int questions = 0;
};

TEST_F(StartPlanTest, AChainWaitsForATimeLimitThatSuffices) {
  PlannedJob planned = plan();
  ASSERT_TRUE(planned.waits);
  EXPECT_EQ(planned.least_s, 0) << "the user gave no limit";
  wishes.time_limit_s = 86400;
  job.checkpoint.directory = "/checkpoints";
  options.chain = true;
  planned = plan();
  ASSERT_TRUE(planned.waits);
  EXPECT_EQ(planned.least_s, least_limit_s(10'000 * planned.plan.prediction->iteration_s));
  EXPECT_EQ(asked_limit_s, planned.least_s);
  EXPECT_LT(planned.least_s, 86400);
  wishes.least_time_is_given = true;
  EXPECT_EQ(plan().least_s, 0) << "with --time-min";
  wishes.least_time_is_given = false;
  options.chain = false;
  EXPECT_EQ(plan().least_s, 0) << "a limit that proves too short would end the training";
}

TEST_F(StartPlanTest, WaitsForFasterNodesWhenThatEndsEarlier) {
  const PlannedJob planned = plan();
  EXPECT_TRUE(planned.waits);
  EXPECT_THAT(node_names(planned.plan), testing::Contains("q1"));
  EXPECT_THAT(planned.table, HasSubstr(" START "));
  EXPECT_THAT(planned.table, HasSubstr("starts: wait 10 min for "));
  EXPECT_THAT(planned.table, HasSubstr("; start now on "));
  EXPECT_LE(questions, 4);
}

TEST_F(StartPlanTest, AJobThatMayGrowStartsNowAndQueuesForFasterNodes) {
  job.elastic.enabled = true;
  queue = {{.nodes = 1, .names = {"q1"}, .start_in_s = 600, .limit_s = 600}};
  const PlannedJob planned = plan();
  EXPECT_FALSE(planned.waits);
  EXPECT_THAT(node_names(planned.plan), testing::Not(testing::Contains("q1")));
  ASSERT_EQ(planned.queued.size(), 1u);
  EXPECT_TRUE(planned.queued[0].are_like(busy[0].node));
  EXPECT_EQ(planned.queued[0].nodes, 1);
  EXPECT_THAT(planned.table, HasSubstr("starts: start now on "));
  EXPECT_THAT(planned.table, HasSubstr(" and queue for 2 quick, end "));
  options.pin = true;
  EXPECT_TRUE(plan().queued.empty()) << "those nodes and no others";
  options.pin = false;
  job.elastic.grow_every_s = 0;
  EXPECT_TRUE(plan().waits) << "the job never grows";
}

TEST_F(StartPlanTest, StartsNowWhenTheJobIsShortOrSlurmSaysMuchLater) {
  answer_s = 100'000;
  const PlannedJob planned = plan();
  EXPECT_FALSE(planned.waits);
  EXPECT_THAT(node_names(planned.plan), testing::Not(testing::Contains("q1")));
  job.training.steps = 10;
  questions = 0;
  EXPECT_FALSE(plan().waits);
  EXPECT_EQ(questions, 0);
}

TEST_F(StartPlanTest, SlurmsAnswerMayBeTheEndOfALaterJob) {
  BusyNode other = busy.front();
  other.node.name = "q2";
  other.free_in_s = 7200;
  busy.push_back(other);
  answer_s = 7200;
  EXPECT_THAT(plan().table, HasSubstr("starts: wait 10 min for "));
  answer_s = 1200;  // about as late as the wait is long
  EXPECT_THAT(plan().table, HasSubstr("starts: wait 10 min for "));
  answer_s = 7000;  // something else holds the job
  EXPECT_THAT(plan().table, testing::Not(HasSubstr("wait 10 min for ")));
}

TEST_F(StartPlanTest, JobsThatTheSchedulerHasNotTriedGetFreeNodesFirst) {
  busy.clear();
  queue = {{.nodes = static_cast<int>(free.size()), .limit_s = 1200}};
  const PlannedJob planned = plan();
  EXPECT_FALSE(planned.waits) << "it could not start on them";
  queue[0].is_new = true;
  answer_s = 1200;
  EXPECT_THAT(plan().table, HasSubstr("starts: wait 20 min for "));
  options.most_wait_s = 0;
  EXPECT_FALSE(plan().waits);
}

TEST_F(StartPlanTest, WithNothingFreeTheJobQueues) {
  free.clear();
  EXPECT_TRUE(plan().waits);
  options.most_wait_s = 300;
  EXPECT_THROW(plan(), Refusal);
  options.most_wait_s = 0;
  EXPECT_THROW(plan(), Refusal);
}

TEST_F(StartPlanTest, WithoutStepsOrWithAPlanOnFreeNodesNothingChanges) {
  job.training.steps = 0;
  EXPECT_FALSE(plan().waits);
  job.training.steps = 10'000;
  options.choose_start = false;
  const PlannedJob planned = plan();
  EXPECT_FALSE(planned.waits);
  EXPECT_THAT(planned.table, testing::Not(HasSubstr(" START ")));
  EXPECT_EQ(questions, 0);
}

TEST_F(StartPlanTest, NoMoreIsPaidForAnEarlierEnd) {
  options.overrides.objective = Expense::cost;
  const PlannedJob planned = plan();
  const double usd = planned.plan.prediction->spent[Expense::cost];
  options.most_wait_s = 0;
  EXPECT_LE(usd, plan().plan.prediction->spent[Expense::cost] * (1 + 1e-9));
}

TEST_F(StartPlanTest, ADeadlineThatNothingMeetsIsRefused) {
  options.deadline = "now+1min";
  try {
    plan();
    FAIL();
  } catch (const Refusal& refusal) {
    EXPECT_THAT(refusal.what(), HasSubstr("no plan ends by now+1min (--sailor-deadline); the earliest: "));
  }
  options.deadline = "now+48h";
  const PlannedJob planned = plan();  // the cheapest, however slow
  options.deadline.clear();
  EXPECT_LE(planned.plan.prediction->spent[Expense::cost], plan().plan.prediction->spent[Expense::cost]);
}

TEST(WaitingJobs, AreThoseOfTheQueueWithTheirNodesStartsAndLimits) {
  SlurmView view;
  view.now = 1000;
  SlurmPartition partition;
  partition.name = "p";
  partition.nodes = {"a1", "a2"};
  partition.max_time_s = 7200;
  view.partitions = {partition};
  view.queue = {{9, 2, "p", {}, 1600, 60}, {8, 1, "hidden", {}, {}, {}}, {7, 1, "p", {}, {}, {}}};
  const std::vector<WaitingJob> jobs = waiting_jobs(view);
  ASSERT_EQ(jobs.size(), 2U);
  EXPECT_EQ(jobs[0].partition, "p");
  EXPECT_EQ(jobs[0].start_in_s, 600);
  EXPECT_EQ(jobs[0].limit_s, 60);
  EXPECT_THAT(jobs[1].names, ElementsAre("a1", "a2"));
  EXPECT_EQ(jobs[1].limit_s, 7200);
  EXPECT_TRUE(jobs[1].is_new);
  view.queue[2].reason = WaitReason::nodes;
  EXPECT_FALSE(waiting_jobs(view)[1].is_new);
  EXPECT_EQ(job_length_s(view, {}), 7200);
}

}  // namespace
}  // namespace sailor
