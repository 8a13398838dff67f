#include "trainer/launch/local_ranks.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>

namespace sailor {
namespace {

using ::testing::ExitedWithCode;

// In a process of its own: it takes signals, and every child, to itself.
[[noreturn]] void run(int ranks, const char* script) {
  std::exit(run_local_ranks(ranks, {"sh", "-c", script}));
}

TEST(LocalRanksDeathTest, EachRankKnowsWhichItIsAndWhereToMeet) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      run(3, R"([ "$SAILOR_RANKS" = 3 ] || exit 9; echo "$SAILOR_RANK" >"$SAILOR_RENDEZVOUS/$SAILOR_RANK"
                        for i in 0 1 2; do while [ ! -s "$SAILOR_RENDEZVOUS/$i" ]; do sleep 0.01; done; done)"),
      ExitedWithCode(0), "");
}

TEST(LocalRanksDeathTest, OneThatFailsEndsTheOthers) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EXIT(run(3, R"([ "$SAILOR_RANK" != 1 ] || exit 7; exec sleep 300)"), ExitedWithCode(7), "");
  EXPECT_EXIT(run(2, R"([ "$SAILOR_RANK" != 1 ] || kill -9 $$; exec sleep 300)"), ExitedWithCode(137), "");
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(200));
}

TEST(LocalRanksDeathTest, SigtermEndsThemAll) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(run(2, R"([ "$SAILOR_RANK" != 1 ] || { kill -TERM $PPID; exit 0; }; exec sleep 300)"),
              ExitedWithCode(143), "");
}

}  // namespace
}  // namespace sailor
