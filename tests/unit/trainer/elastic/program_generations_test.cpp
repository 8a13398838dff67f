// The decisions about an elastic job of another trainer's program.
#include "trainer/elastic/program_generations.h"

#include <gmock/gmock.h>

#include "planner/spec/error.h"

namespace sailor {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr ProgramGenerations::Limits kTimes{.end_s = 60,
                                            .loss_s = 7,
                                            .nodes_s = 600,
                                            .restarts = 3,
                                            .lasting_s = 600,
                                            .pause_s = 5,
                                            .longest_pause_s = 60};

// The actions by name, in order.
std::vector<std::string> names(const std::vector<ProgramAction>& actions) {
  constexpr const char* kNames[] = {"end ranks", "drop", "plan", "run", "end"};
  std::vector<std::string> out;
  for (const ProgramAction& action : actions) out.emplace_back(kNames[action.index()]);
  return out;
}

class ProgramGenerationsTest : public testing::Test {
 protected:
  // Generation 1 runs on n1, n2 and n3.
  void SetUp() override {
    programs_.begin({"n1", "n2", "n3"}, 0);
    all_started(1);
    programs_.take_actions();
  }
  void all_started(double now_s) {
    for (const std::string& node : std::set<std::string>(programs_.nodes()))
      programs_.started(node, programs_.generation(), now_s);
  }
  void all_end(double now_s) {
    for (const std::string node : {"n1", "n2", "n3"})
      programs_.ended(node, programs_.generation(), 143, now_s);
  }
  std::vector<std::string> actions() { return names(programs_.take_actions()); }
  // A rank of n1 fails at once, the others end; no loss is noticed.
  void fails(double now_s) {
    programs_.ended("n1", programs_.generation(), 9, now_s);
    for (const std::string node : {"n2", "n3"}) programs_.ended(node, programs_.generation(), 143, now_s);
    programs_.tick(now_s + 7.1);
  }
  EndPrograms the_end() {
    for (const ProgramAction& action : programs_.take_actions())
      if (const auto* end = std::get_if<EndPrograms>(&action)) return *end;
    ADD_FAILURE() << "the job has not ended";
    return {};
  }

  ProgramGenerations programs_{kTimes};
};

TEST_F(ProgramGenerationsTest, EndsWhenAllRanksHaveEnded) {
  programs_.ended("n1", 1, 0, 5);
  programs_.ended("n2", 1, 0, 5);
  EXPECT_THAT(actions(), IsEmpty());
  EXPECT_FALSE(programs_.undisturbed());
  programs_.ended("n3", 1, 0, 6);
  const EndPrograms end = the_end();
  EXPECT_EQ(end.exit_code, kDone);
  EXPECT_EQ(end.error, "");
}

TEST_F(ProgramGenerationsTest, StartsAgainWithoutALostNode) {
  EXPECT_TRUE(programs_.undisturbed());
  programs_.lost("n2", "no answer", 10);
  EXPECT_THAT(actions(), ElementsAre("end ranks"));
  EXPECT_THAT(programs_.running(), ElementsAre("n1", "n3"));
  programs_.ended("n1", 1, 143, 11);
  EXPECT_THAT(actions(), IsEmpty());
  programs_.ended("n3", 1, 143, 12);
  EXPECT_THAT(actions(), ElementsAre("plan"));
  programs_.planned({"n1", "n3"}, 0.5, 12.5);
  EXPECT_EQ(programs_.generation(), 2);
  programs_.started("n1", 2, 13);
  programs_.started("n3", 1, 13);  // of the generation before: not counted
  EXPECT_THAT(actions(), IsEmpty());
  programs_.started("n3", 2, 14);
  const std::vector<ProgramAction> run = programs_.take_actions();
  ASSERT_THAT(names(run), ElementsAre("run"));
  const ProgramChange change = std::get<RanksRun>(run.front()).change;
  EXPECT_THAT(change.reasons, ElementsAre("n2 is lost: no answer"));
  EXPECT_EQ(change.detected_s, 10);
  EXPECT_EQ(change.ended_s, 12);
  EXPECT_EQ(change.plan_s, 0.5);
  EXPECT_EQ(change.running_s, 14);
  EXPECT_FALSE(change.failed);
  EXPECT_EQ(programs_.restarts(), 0);
}

// Ranks beside a lost node fail before the loss is noticed.
TEST_F(ProgramGenerationsTest, ALossExplainsAnEarlierFailure) {
  programs_.ended("n1", 1, 1, 10);
  EXPECT_THAT(actions(), ElementsAre("end ranks"));
  programs_.ended("n3", 1, 1, 10.5);
  programs_.tick(12);
  EXPECT_THAT(actions(), IsEmpty());  // n2 has not ended
  programs_.lost("n2", "no answer", 13);
  EXPECT_THAT(actions(), ElementsAre("plan"));
  EXPECT_THAT(programs_.current().reasons,
              ElementsAre("a rank on n1 failed with exit code 1", "n2 is lost: no answer"));
  programs_.planned({"n1", "n3"}, 0, 13);
  EXPECT_EQ(programs_.restarts(), 0);
}

// All ranks have ended when the loss is noticed.
TEST_F(ProgramGenerationsTest, ALossThatIsNoticedAfterAllRanksHaveEndedExplainsThem) {
  programs_.ended("n2", 1, 1, 10);
  programs_.ended("n1", 1, 1, 10);
  programs_.ended("n3", 1, 1, 10);
  EXPECT_EQ(programs_.state(), ProgramGenerations::State::settling);
  programs_.take_actions();
  programs_.lost("n2", "its agent has ended", 12);
  EXPECT_THAT(actions(), ElementsAre("plan"));
}

TEST_F(ProgramGenerationsTest, AProgramThatFailsIsStartedAgainAfterGrowingPauses) {
  fails(10);
  EXPECT_THAT(actions(), ElementsAre("end ranks", "plan"));  // at once
  programs_.planned({"n1", "n2", "n3"}, 0, 18);
  EXPECT_EQ(programs_.restarts(), 1);
  fails(20);
  programs_.tick(31);  // 27.1 + 5 s
  EXPECT_EQ(programs_.state(), ProgramGenerations::State::pausing);
  programs_.tick(32.2);
  EXPECT_EQ(programs_.state(), ProgramGenerations::State::planning);
  programs_.planned({"n1", "n2", "n3"}, 0, 33);
  fails(34);
  programs_.tick(51);  // 41.1 + 10 s
  EXPECT_EQ(programs_.state(), ProgramGenerations::State::pausing);
  programs_.tick(51.2);
  programs_.planned({"n1", "n2", "n3"}, 0, 52);
  programs_.take_actions();
  fails(53);
  const EndPrograms end = the_end();
  EXPECT_EQ(end.exit_code, 9);
  EXPECT_EQ(end.error, "a rank on n1 failed with exit code 9, 4 times in a row");
  EXPECT_EQ(programs_.restarts(), 3);
}

TEST_F(ProgramGenerationsTest, AGenerationThatLastedStartsTheCountAnew) {
  for (int i = 0; i < 10; ++i) {
    const double start_s = 1000.0 * i;
    fails(start_s + 700);
    ASSERT_EQ(programs_.state(), ProgramGenerations::State::planning) << i;
    programs_.planned({"n1", "n2", "n3"}, 0, start_s + 708);
  }
}

TEST_F(ProgramGenerationsTest, ALossDuringAPauseEndsThePause) {
  fails(10);
  programs_.planned({"n1", "n2", "n3"}, 0, 18);
  fails(20);
  EXPECT_EQ(programs_.state(), ProgramGenerations::State::pausing);
  programs_.take_actions();
  programs_.lost("n3", "no answer", 28);
  EXPECT_THAT(actions(), ElementsAre("plan"));
}

TEST_F(ProgramGenerationsTest, WaitsForNodesWithoutAPlanButNotForEver) {
  programs_.lost("n2", "x", 10);
  programs_.ended("n1", 1, 1, 10);
  programs_.ended("n3", 1, 1, 10);
  programs_.take_actions();
  programs_.no_plan("nothing fits", 11);
  EXPECT_EQ(programs_.state(), ProgramGenerations::State::waiting);
  programs_.more_nodes(400);
  EXPECT_THAT(actions(), ElementsAre("plan"));
  programs_.no_plan("still nothing fits", 400);
  programs_.tick(610);
  EXPECT_THAT(actions(), IsEmpty());
  programs_.tick(612);  // the wait began at 11
  const EndPrograms end = the_end();
  EXPECT_EQ(end.exit_code, kFailed);
  EXPECT_THAT(end.error, HasSubstr("still nothing fits"));
}

TEST_F(ProgramGenerationsTest, ANodeThatDoesNotEndItsRanksIsDropped) {
  programs_.change("more GPUs are ready", 10);
  programs_.ended("n1", 1, 0, 11);
  programs_.ended("n2", 1, 143, 11);
  programs_.tick(69);
  EXPECT_THAT(actions(), ElementsAre("end ranks"));
  programs_.tick(71);
  EXPECT_THAT(actions(), ElementsAre("drop"));
  programs_.lost("n3", "its ranks do not end", 71);
  EXPECT_THAT(actions(), ElementsAre("plan"));
  EXPECT_THAT(programs_.current().reasons,
              ElementsAre("more GPUs are ready", "n3 is lost: its ranks do not end"));
}

// It was told to end: whatever its exit code, it has not failed.
TEST_F(ProgramGenerationsTest, ExitCodesOfAChangeDoNotCount) {
  programs_.change("more GPUs are ready", 10);
  for (const std::string node : {"n1", "n2", "n3"}) programs_.ended(node, 1, 0, 11);
  EXPECT_THAT(actions(), ElementsAre("end ranks", "plan"));
  programs_.planned({"n1", "n2", "n3", "n4"}, 0, 11);
  EXPECT_EQ(programs_.restarts(), 0);
  EXPECT_EQ(programs_.state(), ProgramGenerations::State::running);
}

TEST_F(ProgramGenerationsTest, NodesThatItDoesNotUseAreOfNoConsequence) {
  programs_.lost("n7", "no answer", 10);
  EXPECT_THAT(actions(), IsEmpty());
  EXPECT_EQ(programs_.state(), ProgramGenerations::State::running);
}

TEST_F(ProgramGenerationsTest, StopsWhenToldTo) {
  programs_.stop("stopped by signal 15", 10);
  EXPECT_THAT(actions(), ElementsAre("end ranks"));
  programs_.lost("n3", "x", 11);
  programs_.ended("n1", 1, 0, 11);
  programs_.ended("n2", 1, 0, 12);
  const EndPrograms end = the_end();
  EXPECT_EQ(end.exit_code, kFailed);
  EXPECT_EQ(end.error, "stopped by signal 15");
  programs_.tick(1000);
  EXPECT_THAT(actions(), IsEmpty());
}

TEST_F(ProgramGenerationsTest, StopsWithoutRanksAtOnce) {
  fails(10);
  programs_.planned({"n1", "n2", "n3"}, 0, 11);
  fails(12);
  programs_.take_actions();
  programs_.stop("stopped by signal 2", 20);
  EXPECT_EQ(the_end().error, "stopped by signal 2");
}

TEST(ProgramGenerations, PlansAnewIfANodeOfTheFirstPlanDoesNotCome) {
  ProgramGenerations programs(kTimes);
  programs.begin_without("no agent of n2 answers", 60);
  EXPECT_THAT(names(programs.take_actions()), ElementsAre("plan"));
  programs.planned({"n1"}, 0.1, 61);
  EXPECT_EQ(programs.generation(), 1);
  EXPECT_THAT(programs.current().reasons, ElementsAre("no agent of n2 answers"));
}

TEST(ProgramGenerations, WithoutRestartsTheFirstFailureIsTheLast) {
  ProgramGenerations::Limits limits = kTimes;
  limits.restarts = 0;
  ProgramGenerations programs(limits);
  programs.begin({"n1"}, 0);
  programs.ended("n1", 1, 3, 5);
  programs.tick(13);
  const std::vector<ProgramAction> actions = programs.take_actions();
  const auto& end = std::get<EndPrograms>(actions.back());
  EXPECT_EQ(end.exit_code, 3);
  EXPECT_EQ(end.error, "a rank on n1 failed with exit code 3");
}

TEST_F(ProgramGenerationsTest, AHangIsAFailureThatBeganWithTheLastStep) {
  for (int restart = 1; restart <= kTimes.restarts; ++restart) {
    const double start_s = 10'000 * restart;
    programs_.hangs("no step for 1800 s", start_s + 500, start_s + 2300);
    EXPECT_THAT(actions(), ElementsAre("end ranks"));
    all_end(start_s + 2310);
    programs_.tick(start_s + 2320);
    programs_.tick(start_s + 2400);
    EXPECT_THAT(actions(), ElementsAre("plan"));
    programs_.planned({"n1", "n2", "n3"}, 0, 10'000 * (restart + 1));
    all_started(10'000 * (restart + 1));
    EXPECT_THAT(actions(), ElementsAre("run"));
  }
  const double start_s = 10'000 * (kTimes.restarts + 1);
  programs_.hangs("no step for 1800 s", start_s + 500, start_s + 2300);
  all_end(start_s + 2310);
  programs_.tick(start_s + 2320);
  const EndPrograms end = the_end();
  EXPECT_EQ(end.exit_code, kFailed);
  EXPECT_EQ(end.error, "no step for 1800 s, 4 times in a row");
}

TEST_F(ProgramGenerationsTest, AHangAfterALongTimeOfStepsBeginsTheCountAnew) {
  for (int restart = 1; restart <= 2 * kTimes.restarts; ++restart) {
    const double start_s = 10'000 * restart;
    programs_.hangs("no step for 1800 s", start_s + 700, start_s + 2500);
    all_end(start_s + 2510);
    programs_.tick(start_s + 2520);
    programs_.tick(start_s + 2521);
    EXPECT_THAT(actions(), ElementsAre("end ranks", "plan"));
    programs_.planned({"n1", "n2", "n3"}, 0, 10'000 * (restart + 1));
    all_started(10'000 * (restart + 1));
    programs_.take_actions();
  }
}

}  // namespace
}  // namespace sailor
