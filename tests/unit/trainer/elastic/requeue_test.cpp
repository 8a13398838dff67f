// When an agent without a controller puts its job back into the queue.
#include "trainer/elastic/requeue.h"

#include <gtest/gtest.h>

namespace sailor {
namespace {

std::string job(const std::string& state, int restarts = 0, const std::string& reason = "None") {
  return "JobId=7 JobName=x UserId=u(1) Requeue=1 Restarts=" + std::to_string(restarts) +
         " BatchFlag=1 JobState=" + state + " Reason=" + reason + " BatchHost=n1 NumNodes=2";
}
std::string node(const std::string& state) {
  return "NodeName=n1 Arch=x86_64 State=" + state + " ThreadsPerCore=1";
}

TEST(Requeue, TheControllersNodeIsLost) {
  EXPECT_EQ(batch_host_of(job("RUNNING")), "n1");
  for (const char* state : {"DOWN", "DOWN*", "MIXED*", "ALLOCATED+NOT_RESPONDING"})
    EXPECT_EQ(judge_lost_job(job("RUNNING"), node(state), 0), RequeueVerdict::requeue) << state;
}

TEST(Requeue, TheBatchScriptEndedByItself) {
  EXPECT_EQ(judge_lost_job(job("FAILED"), "", 0), RequeueVerdict::requeue);
  EXPECT_EQ(judge_lost_job(job("NODE_FAIL"), "", 0), RequeueVerdict::requeue);
  EXPECT_EQ(judge_lost_job(job("COMPLETING", 0, "JobLaunchFailure"), "", 0), RequeueVerdict::requeue);
  EXPECT_EQ(judge_lost_job(job("COMPLETING"), "", 0), RequeueVerdict::wait) << "it was cancelled, perhaps";
}

TEST(Requeue, ACutOffNodeDoesNotEndAJobThatRunsElsewhere) {
  EXPECT_EQ(judge_lost_job(job("RUNNING"), node("MIXED"), 0), RequeueVerdict::wait);
  EXPECT_EQ(judge_lost_job(job("RUNNING"), "", 0), RequeueVerdict::wait);
  EXPECT_EQ(judge_lost_job("", "", 0), RequeueVerdict::wait) << "Slurm cannot be asked";
}

TEST(Requeue, AJobThatWasCancelledOrIsDoneIsLeftAlone) {
  for (const char* state : {"CANCELLED", "COMPLETED", "TIMEOUT", "PENDING", "PREEMPTED"})
    EXPECT_EQ(judge_lost_job(job(state), node("DOWN"), 0), RequeueVerdict::leave) << state;
}

TEST(Requeue, AJobThatWasRequeuedAlreadyIsNotRequeuedAgain) {
  EXPECT_EQ(judge_lost_job(job("RUNNING", 1), node("DOWN"), 0), RequeueVerdict::leave);
  EXPECT_EQ(judge_lost_job(job("RUNNING", 1), node("DOWN"), 1), RequeueVerdict::requeue);
}

}  // namespace
}  // namespace sailor
