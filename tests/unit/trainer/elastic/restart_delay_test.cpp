#include "trainer/elastic/restart_delay.h"

#include <gtest/gtest.h>

namespace sailor {
namespace {

TEST(RestartDelay, AGpuWhoseProcessesEndAtOnceIsTriedMoreAndMoreSeldomButAlwaysAgain) {
  RestartDelay delay;
  double now_s = 1000, before_s = 0;
  EXPECT_EQ(delay.ended("n1", 0, now_s), 0);
  EXPECT_EQ(delay.ended("n1", 0, now_s), 0);
  for (int i = 0; i < 12; ++i) {
    const double wait_s = delay.ended("n1", 0, now_s);
    EXPECT_GE(wait_s, std::max(5.0, before_s));
    EXPECT_LE(wait_s, 600);
    before_s = wait_s;
    now_s += wait_s;
    delay.joined("n1", 0, now_s);
    now_s += 1;
  }
  EXPECT_GE(before_s, 300);
  EXPECT_EQ(delay.ended("n1", 1, now_s), 0) << "its neighbour is another GPU";
}

TEST(RestartDelay, ALongLifeMakesUpForEarlierEnds) {
  RestartDelay delay;
  for (int i = 0; i < 5; ++i) delay.ended("n1", 0, i);
  delay.joined("n1", 0, 100);
  EXPECT_EQ(delay.ended("n1", 0, 100 + 3600), 0);
}

TEST(RestartDelay, FaultsFromOutsideNeverGiveAGpuUp) {
  RestartDelay delay;
  double now_s = 0;
  for (int i = 0; i < 100; ++i) {
    delay.joined("n1", 0, now_s);
    now_s += 75;
    EXPECT_EQ(delay.ended("n1", 0, now_s), 0);
  }
}

}  // namespace
}  // namespace sailor
