// What a job decides when its processes come and go: no sockets, a clock of the test's own.
#include "trainer/elastic/reconfiguration.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sailor {
namespace {

using State = Reconfiguration::State;
using testing::HasSubstr;

struct ReconfigurationTest : testing::Test {
  Reconfiguration::Limits limits{.idle_s = 7, .start_s = 60, .nodes_s = 100, .fruitless = 3};
  Reconfiguration job{limits};

  // The actions of one kind since the last look; all others are forgotten.
  template <class Action>
  std::vector<Action> taken() {
    std::vector<Action> found;
    for (const ReconfigurationAction& action : job.take_actions()) {
      if (const Action* one = std::get_if<Action>(&action)) found.push_back(*one);
    }
    return found;
  }
  void run(const std::vector<int>& processes, double now_s) {
    job.begin(processes, now_s);
    for (const int process : processes) job.started(process, 1, now_s);
    EXPECT_EQ(taken<NowRunning>().size(), 1u);
    EXPECT_EQ(job.state(), State::running);
  }
};

TEST_F(ReconfigurationTest, ALossInterruptsThenPlansOnceTheOthersHaveStopped) {
  run({0, 1, 2}, 0);
  job.lost(1, "killed", 10);
  const auto interrupts = taken<SendInterrupt>();
  ASSERT_EQ(interrupts.size(), 1u);
  EXPECT_EQ(interrupts[0].generation, 1);
  EXPECT_EQ(interrupts[0].after_step, 0);
  job.idle(0, 1, 10.1);
  EXPECT_TRUE(taken<MakePlan>().empty()) << "rank 2 is still in its step";
  job.idle(2, 1, 10.2);
  EXPECT_EQ(taken<MakePlan>().size(), 1u);
  job.planned({2, 0}, {}, 0.05, 10.3);
  EXPECT_EQ(job.generation(), 2);
  EXPECT_EQ(job.base(), 1) << "nothing has run in generation 2 yet";
  job.started(0, 2, 10.4);
  EXPECT_EQ(job.state(), State::starting);
  job.started(2, 2, 10.5);
  EXPECT_EQ(job.state(), State::running);
  EXPECT_EQ(job.base(), 2);
  EXPECT_DOUBLE_EQ(job.current().detected_s, 10);
  EXPECT_DOUBLE_EQ(job.current().idle_s, 10.2);
  EXPECT_DOUBLE_EQ(job.current().running_s, 10.5);
  EXPECT_EQ(job.current().lost, std::set<int>{1});
}

TEST_F(ReconfigurationTest, ProcessesOfTheFirstGenerationMayStartBeforeAllAreKnown) {
  job.started(0, 1, 1);
  EXPECT_EQ(job.state(), State::joining);
  job.begin({0, 1}, 2);
  EXPECT_EQ(job.state(), State::starting);
  job.started(1, 1, 3);
  EXPECT_EQ(job.state(), State::running);
  EXPECT_EQ(taken<NowRunning>().size(), 1u);
}

TEST_F(ReconfigurationTest, WhatAChangeCameToIsToldAlsoWhereTheNextOneBeginsAtOnce) {
  run({0, 1, 2}, 0);
  job.lost(1, "killed", 10);
  job.idle(0, 1, 10.1);
  job.idle(2, 1, 10.2);
  job.planned({2, 0}, {}, 0.05, 10.3);
  job.started(0, 2, 10.4);
  job.started(2, 2, 10.5);
  EXPECT_DOUBLE_EQ(job.since_s(), 10.5);
  job.change("another", 0, false, 0, 10.6);  // before anybody has taken what is to be done
  const auto running = taken<NowRunning>();
  ASSERT_EQ(running.size(), 1u);
  EXPECT_EQ(running[0].change.lost, std::set<int>{1});
  EXPECT_DOUBLE_EQ(running[0].change.detected_s, 10);
  EXPECT_DOUBLE_EQ(running[0].change.idle_s, 10.2);
  EXPECT_DOUBLE_EQ(running[0].change.running_s, 10.5);
}

TEST_F(ReconfigurationTest, AnAnswerOfAnOlderGenerationIsIgnored) {
  run({0, 1, 2}, 0);
  job.lost(1, "killed", 1);
  job.idle(0, 1, 1);
  job.idle(2, 1, 1);
  job.planned({0, 2}, {}, 0, 1);
  taken<MakePlan>();
  job.idle(0, 1, 2);
  job.broken(2, 1, "connection lost", -1, 2);
  job.started(0, 1, 2);
  job.started(2, 1, 2);
  EXPECT_EQ(job.state(), State::starting);
  EXPECT_TRUE(taken<SendInterrupt>().empty());
}

TEST_F(ReconfigurationTest, ASecondLossWhileTheOthersStopIsPartOfTheSameChange) {
  run({0, 1, 2, 3}, 0);
  job.lost(1, "killed", 1);
  job.idle(0, 1, 1.1);
  job.lost(2, "killed too", 1.2);
  EXPECT_TRUE(taken<MakePlan>().empty());
  job.idle(3, 1, 1.3);
  EXPECT_EQ(taken<MakePlan>().size(), 1u);
  EXPECT_EQ(job.alive(), (std::set<int>{0, 3}));
  EXPECT_EQ(job.current().reasons.size(), 2u);
}

TEST_F(ReconfigurationTest, TheLastOneThatWasWaitedForMayBeLostInstead) {
  run({0, 1, 2}, 0);
  job.lost(1, "killed", 1);
  job.idle(0, 1, 1.1);
  job.lost(2, "killed too", 1.2);
  EXPECT_EQ(taken<MakePlan>().size(), 1u);
}

TEST_F(ReconfigurationTest, ALossWhileTheNewGenerationStartsMakesAnotherOne) {
  run({0, 1, 2, 3}, 0);
  job.lost(3, "killed", 1);
  for (const int process : {0, 1, 2}) job.idle(process, 1, 1);
  job.planned({0, 1, 2}, {}, 0, 1);
  job.started(0, 2, 1.5);
  taken<MakePlan>();
  job.lost(1, "killed too", 2);
  const auto interrupts = taken<SendInterrupt>();
  ASSERT_EQ(interrupts.size(), 1u);
  EXPECT_EQ(interrupts[0].generation, 2);
  job.idle(0, 2, 2.1);
  job.idle(2, 2, 2.1);
  EXPECT_EQ(taken<MakePlan>().size(), 1u);
  job.planned({0, 2}, {}, 0, 2.2);
  EXPECT_EQ(job.generation(), 3);
  EXPECT_EQ(job.base(), 1) << "generation 2 never ran: state of generation 1 counts";
  EXPECT_EQ(job.current().lost, (std::set<int>{1, 3}));
  EXPECT_EQ(job.current().attempts, 2);
}

TEST_F(ReconfigurationTest, APlanForAProcessThatIsGoneIsMadeAgain) {
  run({0, 1, 2}, 0);
  job.lost(1, "killed", 1);
  job.idle(0, 1, 1);
  job.idle(2, 1, 1);
  EXPECT_EQ(taken<MakePlan>().size(), 1u);
  job.lost(2, "killed too", 1.1);
  job.planned({0, 2}, {}, 0, 1.2);
  EXPECT_EQ(job.state(), State::planning);
  EXPECT_EQ(taken<MakePlan>().size(), 1u);
}

TEST_F(ReconfigurationTest, WhoDoesNotAnswerTheInterruptIsDropped) {
  run({0, 1, 2}, 0);
  job.broken(0, 1, "no answer from rank 2", -1, 1);
  EXPECT_EQ(taken<SendInterrupt>().size(), 1u);
  job.idle(0, 1, 1.1);
  job.idle(1, 1, 1.1);
  job.tick(7.9);
  EXPECT_TRUE(taken<DropProcess>().empty());
  job.tick(8.1);
  EXPECT_EQ(job.alive(), (std::set<int>{0, 1}));
  bool dropped = false, planning = false;
  for (const ReconfigurationAction& action : job.take_actions()) {
    const DropProcess* drop = std::get_if<DropProcess>(&action);
    dropped = dropped || (drop && drop->process == 2);
    planning = planning || std::holds_alternative<MakePlan>(action);
  }
  EXPECT_TRUE(dropped);
  EXPECT_TRUE(planning);
}

TEST_F(ReconfigurationTest, WhoOthersLostTheConnectionToIsDroppedSooner) {
  run({0, 1, 2}, 0);
  job.broken(0, 1, "rank 2 is gone (connection reset)", 2, 1);
  job.idle(0, 1, 1.1);
  job.tick(3.5);
  EXPECT_TRUE(taken<DropProcess>().empty()) << "rank 1 is waited for as well, and nobody suspects it";
  job.idle(1, 1, 3.6);
  job.tick(3.7);
  EXPECT_EQ(job.alive(), (std::set<int>{0, 1}));
  EXPECT_EQ(taken<DropProcess>().size(), 1u);
  EXPECT_EQ(job.state(), State::planning);
}

TEST_F(ReconfigurationTest, ASuspectThatAnswersStays) {
  run({0, 1}, 0);
  job.broken(0, 1, "rank 1 is gone", 1, 1);
  job.idle(0, 1, 1.1);
  job.idle(1, 1, 1.2);
  EXPECT_EQ(job.alive(), (std::set<int>{0, 1}));
  EXPECT_EQ(taken<MakePlan>().size(), 1u);
}

TEST_F(ReconfigurationTest, WhoOnlyGivesItsStateMustDoSoAndIsSpareThen) {
  run({0, 1, 2}, 0);
  job.lost(0, "killed", 1);
  job.idle(1, 1, 1);
  job.idle(2, 1, 1);
  job.planned({1}, {2}, 0, 1);
  job.started(1, 2, 2);
  EXPECT_EQ(job.state(), State::starting);
  job.started(2, 2, 2);
  EXPECT_EQ(job.state(), State::running);
  EXPECT_EQ(job.working(), std::set<int>{1});
  job.lost(2, "killed", 3);
  EXPECT_EQ(job.state(), State::running);
}

TEST_F(ReconfigurationTest, AGiverThatIsLostBeforeItGaveMakesAnotherGeneration) {
  run({0, 1, 2}, 0);
  job.lost(0, "killed", 1);
  job.idle(1, 1, 1);
  job.idle(2, 1, 1);
  job.planned({1}, {2}, 0, 1);
  taken<MakePlan>();
  job.lost(2, "killed", 2);
  job.idle(1, 2, 2);
  EXPECT_EQ(taken<MakePlan>().size(), 1u);
}

TEST_F(ReconfigurationTest, ABrokenConnectionWithNobodyLostIsTriedAgainButNotForEver) {
  run({0, 1}, 0);
  for (int generation = 1; generation < limits.fruitless; ++generation) {
    job.broken(0, generation, "connection reset", -1, generation);
    job.idle(0, generation, generation);
    job.idle(1, generation, generation);
    job.planned({0, 1}, {}, 0, generation);
    job.started(0, generation + 1, generation);
    job.started(1, generation + 1, generation);
    EXPECT_EQ(job.state(), State::running);
  }
  taken<MakePlan>();
  job.broken(0, limits.fruitless, "connection reset", -1, 9);
  job.idle(0, limits.fruitless, 9);
  job.idle(1, limits.fruitless, 9);
  const auto ends = taken<EndJob>();
  ASSERT_EQ(ends.size(), 1u);
  EXPECT_THAT(ends[0].error, HasSubstr("connection reset"));
}

TEST_F(ReconfigurationTest, AStepThatIsDoneForgivesBrokenConnections) {
  run({0, 1}, 0);
  for (int generation = 1; generation < 10; ++generation) {
    job.broken(0, generation, "connection reset", -1, generation);
    job.idle(0, generation, generation);
    job.idle(1, generation, generation);
    job.planned({0, 1}, {}, 0, generation);
    job.started(0, generation + 1, generation);
    job.started(1, generation + 1, generation);
    job.step_done();
  }
  EXPECT_EQ(job.state(), State::running);
}

TEST_F(ReconfigurationTest, ASpareThatIsLostChangesNothing) {
  run({0, 1}, 0);
  job.joined(2, 1);
  job.lost(2, "killed", 2);
  EXPECT_EQ(job.state(), State::running);
  EXPECT_TRUE(taken<SendInterrupt>().empty());
}

TEST_F(ReconfigurationTest, WithoutAPlanItWaitsForProcessesAndThenGoesOn) {
  run({0, 1}, 0);
  job.lost(1, "killed", 1);
  job.idle(0, 1, 1);
  taken<MakePlan>();
  job.no_plan("too little memory", 1);
  EXPECT_EQ(job.state(), State::waiting);
  job.tick(50);
  job.joined(2, 60);
  EXPECT_EQ(taken<MakePlan>().size(), 1u);
  job.planned({0, 2}, {}, 0, 60);
  EXPECT_EQ(job.state(), State::starting);
}

TEST_F(ReconfigurationTest, WithoutAPlanForTooLongItEndsAndSaysWhy) {
  run({0, 1}, 0);
  job.lost(1, "killed", 1);
  job.idle(0, 1, 1);
  job.no_plan("too little memory", 1);
  taken<MakePlan>();
  job.tick(102);
  const auto ends = taken<EndJob>();
  ASSERT_EQ(ends.size(), 1u);
  EXPECT_THAT(ends[0].error, HasSubstr("too little memory"));
  EXPECT_THAT(ends[0].error, HasSubstr("100 s"));
  EXPECT_EQ(job.state(), State::ended);
}

TEST_F(ReconfigurationTest, AllProcessesGoneIsWaitingForOthersToo) {
  run({0, 1}, 0);
  job.lost(0, "killed", 1);
  job.lost(1, "killed", 1);
  EXPECT_GE(taken<MakePlan>().size(), 1u);
  job.no_plan("nothing is left", 1);
  job.joined(2, 3);
  EXPECT_EQ(taken<MakePlan>().size(), 1u);
}

TEST_F(ReconfigurationTest, AnOrderlyChangeNamesAStepAndBecomesAnInterruptWhenThatIsNotReached) {
  run({0, 1}, 0);
  job.joined(2, 1);
  job.change("more GPUs", 12, false, 5, 2);
  auto interrupts = taken<SendInterrupt>();
  ASSERT_EQ(interrupts.size(), 1u);
  EXPECT_EQ(interrupts[0].after_step, 12);
  job.idle(0, 1, 3);
  job.tick(6.9);
  EXPECT_TRUE(taken<SendInterrupt>().empty());
  job.tick(7.1);
  interrupts = taken<SendInterrupt>();
  ASSERT_EQ(interrupts.size(), 1u);
  EXPECT_EQ(interrupts[0].after_step, 0);
  job.idle(1, 1, 7.2);
  EXPECT_EQ(taken<MakePlan>().size(), 1u);
}

TEST_F(ReconfigurationTest, ALossDuringAnOrderlyChangeInterruptsAtOnce) {
  run({0, 1, 2}, 0);
  job.change("more GPUs", 12, false, 60, 2);
  taken<SendInterrupt>();
  job.idle(0, 1, 3);
  job.lost(1, "killed", 4);
  const auto interrupts = taken<SendInterrupt>();
  ASSERT_EQ(interrupts.size(), 1u);
  EXPECT_EQ(interrupts[0].after_step, 0);
  job.idle(2, 1, 4.1);
  EXPECT_EQ(taken<MakePlan>().size(), 1u);
}

TEST_F(ReconfigurationTest, AGenerationThatDoesNotStartIsInterrupted) {
  run({0, 1, 2}, 0);
  job.lost(2, "killed", 1);
  job.idle(0, 1, 1);
  job.idle(1, 1, 1);
  job.planned({0, 1}, {}, 0, 1);
  job.started(0, 2, 2);
  taken<MakePlan>();
  job.tick(62);
  EXPECT_EQ(taken<SendInterrupt>().size(), 1u);
  job.idle(0, 2, 62);
  job.tick(70);
  EXPECT_EQ(taken<DropProcess>().size(), 1u) << "process 1 never answered";
  EXPECT_EQ(job.alive(), std::set<int>{0});
}

}  // namespace
}  // namespace sailor
