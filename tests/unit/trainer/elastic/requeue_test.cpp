// When an agent without a controller puts its job back into the queue.
#include "trainer/elastic/requeue.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace sailor
