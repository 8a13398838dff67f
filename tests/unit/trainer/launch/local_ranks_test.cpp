#include "trainer/launch/local_ranks.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <thread>

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

// Libraries may start threads when they are loaded, and the kernel now and then gives SIGCHLD to such a
// thread.
TEST(LocalRanksDeathTest, AThreadThatTakesTheSignalsHidesNoEnd) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto beside_a_thread = [] {
    std::thread([] {
      for (;;) pause();
    }).detach();
    int code = 0;
    for (int turn = 0; turn < 100 && code == 0; ++turn) code = run_local_ranks(1, {"true"});
    std::exit(code);
  };
  EXPECT_EXIT(beside_a_thread(), ExitedWithCode(0), "");
}

TEST(LocalRanksDeathTest, SigtermEndsThemAll) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(run(2, R"([ "$SAILOR_RANK" != 1 ] || { kill -TERM $PPID; exit 0; }; exec sleep 300)"),
              ExitedWithCode(143), "");
}

}  // namespace
}  // namespace sailor
