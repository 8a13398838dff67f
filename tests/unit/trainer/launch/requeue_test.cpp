// When an agent without a controller puts its job back into the queue.
#include "trainer/launch/requeue.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "planner/scheduler/simulated_scheduler.h"

namespace sailor {
namespace {

QueuedJob job(JobState state, int restarts = 0) {
  QueuedJob job;
  job.state = state;
  job.restarts = restarts;
  job.head_node = "n1";
  return job;
}
NodeInfo node(bool up, bool responds) {
  NodeInfo node;
  node.up = up;
  node.responds = responds;
  return node;
}
const NodeInfo kLost = node(false, true), kWell = node(true, true);

TEST(Requeue, TheControllersNodeIsLost) {
  EXPECT_EQ(judge_lost_job(job(JobState::running), kLost, 0), RequeueVerdict::requeue);
  EXPECT_EQ(judge_lost_job(job(JobState::running), node(true, false), 0), RequeueVerdict::requeue);
}

TEST(Requeue, TheBatchScriptEndedByItself) {
  EXPECT_EQ(judge_lost_job(job(JobState::failed), {}, 0), RequeueVerdict::requeue);
  EXPECT_EQ(judge_lost_job(job(JobState::node_failed), {}, 0), RequeueVerdict::requeue);
  QueuedJob ends = job(JobState::completing);
  EXPECT_EQ(judge_lost_job(ends, {}, 0), RequeueVerdict::wait) << "it was cancelled, perhaps";
  ends.failed = true;
  EXPECT_EQ(judge_lost_job(ends, {}, 0), RequeueVerdict::requeue);
}

TEST(Requeue, ACutOffNodeDoesNotEndAJobThatRunsElsewhere) {
  EXPECT_EQ(judge_lost_job(job(JobState::running), kWell, 0), RequeueVerdict::wait);
  EXPECT_EQ(judge_lost_job(job(JobState::running), {}, 0), RequeueVerdict::wait);
  EXPECT_EQ(judge_lost_job({}, {}, 0), RequeueVerdict::wait) << "the scheduler cannot be asked";
}

TEST(Requeue, AJobThatWasCancelledOrIsDoneIsLeftAlone) {
  for (const JobState state : {JobState::cancelled, JobState::completed, JobState::timed_out,
                               JobState::pending, JobState::preempted, JobState::other})
    EXPECT_EQ(judge_lost_job(job(state), kLost, 0), RequeueVerdict::leave) << static_cast<int>(state);
}

TEST(Requeue, AJobThatWasRequeuedAlreadyIsNotRequeuedAgain) {
  EXPECT_EQ(judge_lost_job(job(JobState::running, 1), kLost, 0), RequeueVerdict::leave);
  EXPECT_EQ(judge_lost_job(job(JobState::running, 1), kLost, 1), RequeueVerdict::requeue);
}

// A job on n1, with its controller, and n2, in a cluster that has one node more. Time is the cluster's.
struct RequeueOfAJob : testing::Test {
  SimulatedCluster cluster{{.nodes = {{.name = "n1"}, {.name = "n2"}, {.name = "n3"}},
                            .partitions = {{.name = "p", .nodes = {"n1", "n2", "n3"}}}}};
  SimulatedScheduler scheduler{cluster};
  const int64_t begin_s = cluster.now_s();
  const std::string id = cluster.submit({.nodes = 2, .no_kill = true});
  int polls = 0;

  RequeueOfAJob() {
    setenv("SAILOR_JOB_ID", id.c_str(), 1);
    setenv("SAILOR_RESTART_COUNT", "0", 1);
  }
  ~RequeueOfAJob() override {
    unsetenv("SAILOR_JOB_ID");
    unsetenv("SAILOR_RESTART_COUNT");
  }
  // What an agent does that has lost its controller now. Returns for how long.
  int64_t agent_is_alone() {
    const int64_t alone_s = cluster.now_s();
    requeue_lost_job(scheduler, 3600,
                     {.now_s = [this] { return static_cast<double>(cluster.now_s()); },
                      .sleep =
                          [this](double s) {
                            ++polls;
                            cluster.advance_to(cluster.now_s() + std::llround(s));
                          },
                      .chance = [] { return 0.5; }});
    return cluster.now_s() - alone_s;
  }
  QueuedJob job() const { return cluster.find_job(id).value(); }
};

TEST_F(RequeueOfAJob, ItGoesBackWhenTheSchedulerSeesThatTheNodeIsLost) {
  cluster.at(begin_s + 300, [this] { cluster.lose_contact("n1"); });
  const double alone_s = static_cast<double>(agent_is_alone());
  EXPECT_GE(alone_s, 300);
  EXPECT_LE(alone_s, 330) << "two pauses later, the job is in the queue again";
  EXPECT_EQ(job().restarts, 1);
  EXPECT_EQ(job().state, JobState::running);
  EXPECT_EQ(job().head_node, "n2") << "on the nodes that are left";
}

TEST_F(RequeueOfAJob, OneThatMayMoveDoesNotWaitForTheNodesThatItNamed) {
  cluster.end_job(id, JobState::cancelled);
  for (const bool moves : {false, true}) {
    const std::string named = cluster.submit({.nodes = 2, .node_names = {"n1", "n2"}, .no_kill = true});
    setenv("SAILOR_JOB_ID", named.c_str(), 1);
    if (moves)
      scheduler.enter(named, {{"SAILOR_EQUAL_NODES_0", "of a plan"}});
    else
      scheduler.enter(named);
    cluster.fail_node("n1");
    agent_is_alone();
    EXPECT_EQ(cluster.find_job(named)->restarts, 1);
    EXPECT_EQ(cluster.find_job(named)->state, moves ? JobState::running : JobState::pending);
    cluster.end_job(named, JobState::cancelled);
    cluster.return_node("n1");
  }
}

TEST_F(RequeueOfAJob, OfSeveralAgentsOneRequeuesIt) {
  cluster.fail_node("n1");
  agent_is_alone();
  EXPECT_EQ(agent_is_alone(), 2) << "a pause before the first poll";
  EXPECT_EQ(job().restarts, 1);
}

TEST_F(RequeueOfAJob, OneThatMustNotBeRequeuedIsGivenUp) {
  const std::string once =
      cluster.submit({.requeue = false, .script = "false"}, {.takes_s = 1, .fails = true});
  setenv("SAILOR_JOB_ID", once.c_str(), 1);
  cluster.advance_to(begin_s + 2);
  EXPECT_LE(agent_is_alone(), 60);
  EXPECT_EQ(cluster.find_job(once)->state, JobState::failed);
}

TEST_F(RequeueOfAJob, OneThatIsCancelledMeanwhileIsLeftAlone) {
  cluster.at(begin_s + 100, [this] { cluster.end_job(id, JobState::cancelled); });
  const double alone_s = static_cast<double>(agent_is_alone());
  EXPECT_GE(alone_s, 100);
  EXPECT_LE(alone_s, 115);
  EXPECT_EQ(job().state, JobState::cancelled);
  EXPECT_EQ(job().restarts, 0);
}

TEST_F(RequeueOfAJob, AnAgentThatIsCutOffGivesUp) {
  EXPECT_NEAR(static_cast<double>(agent_is_alone()), 3600, 15);
  EXPECT_EQ(job().restarts, 0);
  EXPECT_LE(polls, 3600 / 15 + 15) << "pauses grow";
}

TEST_F(RequeueOfAJob, OutsideAJobNothingIsAsked) {
  unsetenv("SAILOR_JOB_ID");
  cluster.fail_node("n1");
  EXPECT_EQ(agent_is_alone(), 0);
  EXPECT_EQ(job().restarts, 0);
}

}  // namespace
}  // namespace sailor
