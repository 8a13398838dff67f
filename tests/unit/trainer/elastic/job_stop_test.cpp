#include "trainer/elastic/job_stop.h"

#include <gtest/gtest.h>

namespace sailor {
namespace {

TEST(JobStop, TheLeadHasTimeForStepsASaveAndTheNextSubmission) {
  const StopLead lead{.step_s = 10, .save_s = 100, .whole_s = 86400};
  EXPECT_EQ(lead_s(lead), 30 + 3 * 10 + 1.5 * 100);
  EXPECT_EQ(time_to_save_s(lead), 15 + 3 * 10 + 1.5 * 100);
}

TEST(JobStop, QuickStepsHaveTimeForTheMessagesThatStopThem) {
  EXPECT_DOUBLE_EQ(time_to_save_s({.step_s = 0.01, .save_s = 0.01, .whole_s = 3600}), 15 + 0.045);
}

TEST(JobStop, AShortJobTrainsForHalfOfItsTime) {
  const StopLead lead{.step_s = 1, .save_s = 30, .whole_s = 60};
  EXPECT_EQ(lead_s(lead), 30);
  EXPECT_EQ(time_to_save_s(lead), 15) << "the rest is for the end of the job";
}

TEST(JobStop, BeforeASaveWasMeasuredItsBytesCount) {
  EXPECT_EQ(estimated_save_s(0), 0);
  EXPECT_EQ(estimated_save_s(100'000'000'000), 500);
}

struct AfterStopTest : testing::Test {
  static constexpr int kRestarts = 2;
  QueuedJob job;
  StopReason told{.text = "stopped by signal 15 (Terminated)"};
  StopReason limit{.text = "stopped before its time limit", .continues = true};

  AfterStopTest() {
    job.state = JobState::running;
    job.restarts = kRestarts;
  }
  AfterStop after(const StopReason& reason, bool saved_more = true) const {
    return after_stop(reason, job, kRestarts, saved_more);
  }
};

TEST_F(AfterStopTest, TheTimeLimitIsNoEnd) {
  EXPECT_EQ(after(limit), AfterStop::continues);
  EXPECT_EQ(after_stop(limit, std::nullopt, kRestarts, true), AfterStop::continues);
  job.state = JobState::completing;
  job.out_of_time = true;  // the scheduler was faster
  EXPECT_EQ(after(told), AfterStop::continues);
}

TEST_F(AfterStopTest, APreemptedJobGoesOn) {
  job.preempted = true;
  EXPECT_EQ(after(told), AfterStop::continues) << "in its grace time";
  job.state = JobState::completing;
  EXPECT_EQ(after(told), AfterStop::continues);
}

TEST_F(AfterStopTest, ACancelledJobEnds) {
  EXPECT_EQ(after(told), AfterStop::ends) << "scancel --signal";
  EXPECT_EQ(after_stop(told, std::nullopt, kRestarts, true), AfterStop::ends);
  for (const JobState state : {JobState::completing, JobState::cancelled}) {
    job.state = state;
    EXPECT_EQ(after(told), AfterStop::ends);
    EXPECT_EQ(after(limit), AfterStop::ends) << "while it stopped";
  }
}

TEST_F(AfterStopTest, ARequeuedJobIsStartedByTheScheduler) {
  job.restarts = kRestarts + 1;
  job.state = JobState::completing;
  EXPECT_EQ(after(told), AfterStop::starts_again);
  EXPECT_EQ(after(limit), AfterStop::starts_again);
  job.preempted = true;
  EXPECT_EQ(after(told, false), AfterStop::starts_again);
}

TEST_F(AfterStopTest, WithoutProgressNoOtherJobFollows) {
  EXPECT_EQ(after(limit, false), AfterStop::no_progress);
  EXPECT_EQ(after(told, false), AfterStop::ends);
  job.preempted = true;
  EXPECT_EQ(after(told, false), AfterStop::no_progress);
}

}  // namespace
}  // namespace sailor
