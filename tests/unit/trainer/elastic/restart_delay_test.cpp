#include "trainer/elastic/restart_delay.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace sailor {
namespace {

TEST(RestartDelay, AGpuWhoseProcessesEndAtOnceIsTriedMoreAndMoreSeldomButAlwaysAgain) {
  RestartDelay delay;
  double now_s = 1000, before_s = 0;
  EXPECT_EQ(delay.ended("n1", 0, now_s), 0);
  EXPECT_EQ(delay.ended("n1", 0, now_s), 0);
  for (int i = 0; i < 20; ++i) {
    const double wait_s = delay.ended("n1", 0, now_s);
    EXPECT_LE(wait_s, 60);
    if (i < 4) {
      EXPECT_GE(wait_s, std::max(5.0, before_s));
    } else {
      EXPECT_GE(wait_s, 30) << "once it is seldom it stays so";
    }
    before_s = wait_s;
    now_s += wait_s + 1;
  }
  EXPECT_EQ(delay.ended("n1", 1, now_s), 0) << "its neighbour is another GPU";
}

TEST(RestartDelay, TimeMakesUpForEarlierEnds) {
  RestartDelay delay;
  for (int i = 0; i < 5; ++i) delay.ended("n1", 0, i);
  EXPECT_EQ(delay.ended("n1", 0, 3600), 0);
}

TEST(RestartDelay, SeldomFaultsFromOutsideAreNoReasonToWait) {
  RestartDelay delay;
  for (int i = 0; i < 100; ++i) EXPECT_EQ(delay.ended("n1", 0, 75.0 * i), 0);
}

}  // namespace
}  // namespace sailor
