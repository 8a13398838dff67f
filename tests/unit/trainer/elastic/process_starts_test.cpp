#include "trainer/elastic/process_starts.h"

#include <gtest/gtest.h>

namespace sailor {
namespace {

const StartProcess kFirst{"n1", "n1", 0}, kSecond{"n1", "n1", 1};

TEST(ProcessStarts, TheFirstIsStartedAtOnceAndThoseThatKeepEndingLater) {
  ProcessStarts starts;
  double now_s = 0;
  EXPECT_EQ(starts.wanted(kFirst, now_s), 0);
  double wait_s = 0;
  for (int i = 0; i < 10 && wait_s == 0; ++i) {
    starts.started(kFirst, now_s);
    starts.joined("n1", 0);
    wait_s = starts.wanted(kFirst, now_s += 1);
  }
  ASSERT_GT(wait_s, 0);
  EXPECT_TRUE(starts.due(now_s + 0.9 * wait_s, false).empty());
  ASSERT_EQ(starts.due(now_s + wait_s, false).size(), 1u);
  EXPECT_TRUE(starts.due(now_s + 2 * wait_s, false).empty()) << "it is named once";
}

TEST(ProcessStarts, WhereNothingTrainsALaterOneIsHurried) {
  ProcessStarts starts;
  double wait_s = 0, now_s = 0;
  for (int i = 0; i < 20 && wait_s < 10; ++i) wait_s = starts.wanted(kFirst, now_s += 1);
  ASSERT_GE(wait_s, 10);
  EXPECT_TRUE(starts.due(now_s + 2, true).empty());
  EXPECT_EQ(starts.due(now_s + 3, true).size(), 1u);
}

TEST(ProcessStarts, OneThatNeverComesIsWantedAgain) {
  ProcessStarts starts;
  starts.started(kFirst, 100);
  starts.started(kSecond, 100);
  EXPECT_TRUE(starts.any_expected(105));
  starts.joined("n1", 1);
  EXPECT_TRUE(starts.never_came(159).empty());
  EXPECT_FALSE(starts.any_expected(159)) << "nobody waits that long";
  const auto missing = starts.never_came(161);
  ASSERT_EQ(missing.size(), 1u);
  EXPECT_EQ(missing[0].gpu, 0);
  EXPECT_TRUE(starts.never_came(300).empty());
}

}  // namespace
}  // namespace sailor
