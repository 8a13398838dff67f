#include "trainer/elastic/stop_signs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

#include "planner/scheduler/simulated_scheduler.h"

namespace sailor {
namespace {

using testing::HasSubstr;

struct StopSignsTest : testing::Test {
  SimulatedCluster cluster{{.nodes = {{.name = "n1"}}, .partitions = {{.name = "p", .nodes = {"n1"}}}}};
  SimulatedScheduler scheduler{cluster};
  const std::string job = scheduler.submit({.time_limit_s = 3600, .script = "train"});
  const int64_t began_s = cluster.now_s(), end_s = began_s + 3600;
  const StopSigns::Training training{.longest_step_s = 10, .save_s = 100};
  const int lead = 30 + 3 * 10 + 150;

  StopSigns signs(std::optional<int64_t> end) {
    return StopSigns({.job = job, .end_s = end, .began_s = began_s, .checkpoint_bytes = 40'000'000'000},
                     scheduler);
  }
};

TEST_F(StopSignsTest, TheJobStopsBeforeItsTimeLimit) {
  StopSigns limited = signs(end_s);
  EXPECT_FALSE(limited.reason(training, end_s - lead - 1));
  const auto reason = limited.reason(training, end_s - lead);
  ASSERT_TRUE(reason);
  EXPECT_TRUE(reason->continues);
  EXPECT_EQ(reason->within_s, lead - 15);
  EXPECT_THAT(reason->text, HasSubstr("before its time limit"));
  EXPECT_FALSE(signs(std::nullopt).reason(training, end_s)) << "without checkpoints it trains to the end";
}

TEST_F(StopSignsTest, WithoutAMeasuredSaveItsBytesSayWhen) {
  StopSigns limited = signs(end_s);
  const StopSigns::Training first{.longest_step_s = 10};
  EXPECT_FALSE(limited.reason(first, end_s - (30 + 3 * 10 + 300) - 1));
  EXPECT_TRUE(limited.reason(first, end_s - (30 + 3 * 10 + 300)));
}

TEST_F(StopSignsTest, ALimitThatWasExtendedIsTakenOver) {
  StopSigns limited = signs(end_s - 600);  // as it was when the job started
  EXPECT_FALSE(limited.reason(training, end_s - 600));
  EXPECT_TRUE(limited.reason(training, end_s - lead));
}

TEST_F(StopSignsTest, ASignalStopsItAndSomeAskForAnotherJob) {
  for (const int number : {SIGTERM, SIGINT, SIGHUP}) {
    StopSigns told = signs(end_s);
    EXPECT_FALSE(told.reason(training, began_s));
    told.signalled(number, 1);
    ASSERT_TRUE(told.reason(training, began_s));
    EXPECT_FALSE(told.reason(training, began_s)->continues) << number;
  }
  StopSigns told = signs(end_s);
  told.signalled(SIGUSR1, 1);
  EXPECT_TRUE(told.reason(training, began_s)->continues);
}

TEST_F(StopSignsTest, ASecondInterruptDoesNotWait) {
  StopSigns told = signs(end_s);
  told.signalled(SIGINT, 10);
  told.signalled(SIGINT, 10.1);
  EXPECT_FALSE(told.impatient()) << "one key press, forwarded";
  told.signalled(SIGTERM, 12);
  EXPECT_FALSE(told.impatient()) << "schedulers repeat it";
  told.signalled(SIGINT, 12);
  EXPECT_TRUE(told.impatient());
  EXPECT_EQ(told.signal(), SIGINT);
}

TEST_F(StopSignsTest, ANodeThatLeavesStopsTheJob) {
  StopSigns told = signs(end_s);
  StopSigns::Training leaving = training;
  leaving.told_to_leave = Leaving{.node = "n1", .grace_s = 25};
  const auto reason = told.reason(leaving, began_s);
  ASSERT_TRUE(reason);
  EXPECT_FALSE(reason->continues);
  EXPECT_EQ(reason->within_s, 20);
  EXPECT_THAT(reason->text, HasSubstr("n1"));
  leaving.told_to_leave->continues = true;
  EXPECT_TRUE(told.reason(leaving, began_s)->continues);
}

}  // namespace
}  // namespace sailor
