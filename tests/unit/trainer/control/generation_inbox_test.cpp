// What a rank's training thread learns of generations, and when it is stopped.
#include "trainer/control/generation_inbox.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace sailor {
namespace {

TEST(GenerationInbox, AnInterruptAbortsThePresentGenerationOnceAndNoOther) {
  GenerationInbox inbox;
  int aborted = 0;
  inbox.enter(2, [&] { ++aborted; });
  inbox.receive(Interrupt{.generation = 1});
  EXPECT_EQ(aborted, 0) << "an older one is over anyway";
  EXPECT_FALSE(inbox.interrupted());
  inbox.receive(Interrupt{.generation = 2});
  inbox.receive(Interrupt{.generation = 2});
  EXPECT_EQ(aborted, 1);
  EXPECT_TRUE(inbox.interrupted());
}

TEST(GenerationInbox, AnInterruptThatCameBeforeTheGenerationWasEnteredCounts) {
  GenerationInbox inbox;
  inbox.receive(Interrupt{.generation = 2});
  int aborted = 0;
  inbox.enter(2, [&] { ++aborted; });
  EXPECT_EQ(aborted, 1);
}

TEST(GenerationInbox, ANewerGenerationEndsThePresentOne) {
  GenerationInbox inbox;
  int aborted = 0;
  inbox.enter(1, [&] { ++aborted; });
  inbox.receive(Generation{.number = 2});
  EXPECT_EQ(aborted, 1);
  EXPECT_EQ(inbox.wait_for_newer_than(1).number, 2);
}

TEST(GenerationInbox, OnlyTheNewestGenerationIsEntered) {
  GenerationInbox inbox;
  inbox.receive(Generation{.number = 3});
  inbox.receive(Generation{.number = 2});
  EXPECT_EQ(inbox.wait_for_newer_than(1).number, 3);
}

TEST(GenerationInbox, NothingIsAbortedAfterLeaving) {
  GenerationInbox inbox;
  int aborted = 0;
  inbox.enter(1, [&] { ++aborted; });
  inbox.leave();
  inbox.receive(Interrupt{.generation = 1});
  EXPECT_EQ(aborted, 0);
  EXPECT_TRUE(inbox.interrupted());
}

TEST(GenerationInbox, AnOrderlyInterruptNamesItsStepAndAbortsNothing) {
  GenerationInbox inbox;
  int aborted = 0;
  inbox.enter(1, [&] { ++aborted; });
  EXPECT_FALSE(inbox.stop_after_step());
  inbox.receive(Interrupt{.generation = 1, .after_step = 7, .save = true});
  ASSERT_TRUE(inbox.stop_after_step());
  EXPECT_EQ(inbox.stop_after_step()->after_step, 7);
  EXPECT_EQ(aborted, 0);
  inbox.wait_until_interrupted();  // returns: it is time to stop
  inbox.receive(Generation{.number = 2});
  inbox.enter(2, [] {});
  EXPECT_FALSE(inbox.stop_after_step()) << "it was about generation 1";
}

TEST(GenerationInbox, ALeaseTellsThatAGenerationRuns) {
  GenerationInbox inbox;
  inbox.enter(2, [] {});
  inbox.receive(Lease{.generation = 1, .seconds = 5});
  std::thread controller([&] { inbox.receive(Lease{.generation = 2, .seconds = 5}); });
  EXPECT_TRUE(inbox.wait_until_running(2));
  controller.join();
  inbox.receive(Generation{.number = 3});
  EXPECT_FALSE(inbox.wait_until_running(3)) << "generation 2 is over, 3 does not run yet";
}

TEST(GenerationInbox, AWaitingThreadWakesUp) {
  GenerationInbox inbox;
  inbox.enter(1, [] {});
  std::atomic<bool> woke = false;
  std::thread waiting([&] {
    inbox.wait_until_interrupted();
    inbox.wait_for_newer_than(1);
    woke = true;
  });
  inbox.receive(Interrupt{.generation = 1});
  inbox.receive(Generation{.number = 2});
  waiting.join();
  EXPECT_TRUE(woke);
}

}  // namespace
}  // namespace sailor
