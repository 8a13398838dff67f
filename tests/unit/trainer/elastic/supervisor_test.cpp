// What the controller concludes from messages and ended processes.
#include "trainer/elastic/supervisor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sailor {
namespace {

using testing::HasSubstr;

struct SupervisorTest : testing::Test {
  JobSpec job = [] {
    JobSpec j;
    j.training.global_batch = 4;
    j.training.steps = 10;
    j.model.sequence = 8;
    return j;
  }();
  Plan plan = [] {
    Plan p;
    PlanStage stage;
    stage.end_layer = 3;
    stage.gpu_type = "A";
    stage.shape.tp = 2;
    stage.node = "n1";
    stage.gpus = {0, 1};
    p.pipelines = {{2, {stage}}};
    return p;
  }();
  Supervisor supervisor{job, plan};

  void join(int rank, int64_t pid) {
    supervisor.receive(
        "p" + std::to_string(rank),
        Hello{
            .role = ControlRole::rank, .rank = rank, .node = "n1", .host = "h", .pid = pid, .generation = 1});
  }
};

TEST_F(SupervisorTest, AllRanksMustJoinAndFinish) {
  EXPECT_EQ(supervisor.missing_ranks(), (std::vector<int>{0, 1}));
  join(0, 10);
  EXPECT_FALSE(supervisor.all_joined());
  join(1, 11);
  EXPECT_TRUE(supervisor.all_joined());
  supervisor.receive("p0", Finished{.rank = 0});
  EXPECT_FALSE(supervisor.all_finished());
  supervisor.receive("p1", Finished{.rank = 1});
  EXPECT_TRUE(supervisor.all_finished());
  EXPECT_FALSE(supervisor.failure());
}

TEST_F(SupervisorTest, AKilledRankIsNamedWithNodeAndSignalAndBeatsItsEcho) {
  join(0, 10);
  join(1, 11);
  supervisor.receive(
      "p0",
      Failure{.rank = 0, .node = "n1", .pid = 10, .text = "connection to rank 1 lost", .peer_lost = true});
  EXPECT_FALSE(supervisor.cause_known());
  EXPECT_THAT(supervisor.failure().value(), HasSubstr("rank 0"));
  supervisor.process_ended("n1", 11, 9);
  EXPECT_TRUE(supervisor.cause_known());
  EXPECT_THAT(supervisor.failure().value(), HasSubstr("rank 1 on n1 (pid 11) was killed by signal 9"));
}

TEST_F(SupervisorTest, OfRanksThatWaitForOneAnotherTheSilentOneIsNamed) {
  const auto waits = [&](int rank, int peer) {
    supervisor.receive("p" + std::to_string(rank),
                       Failure{.rank = rank,
                               .text = "recv on c: rank " + std::to_string(peer) + " on host h: no answer",
                               .peer_lost = true,
                               .lost_peer = peer});
  };
  waits(3, 0);
  EXPECT_THAT(supervisor.failure().value(), HasSubstr("rank 0 on host h: no answer"));
  waits(0, 2);
  EXPECT_THAT(supervisor.failure().value(), HasSubstr("rank 2 on host h: no answer"));
  waits(1, 0);
  EXPECT_THAT(supervisor.failure().value(), HasSubstr("rank 2 on host h: no answer"));
  waits(2, 3);  // nobody is silent: who said it first
  EXPECT_THAT(supervisor.failure().value(), HasSubstr("rank 3: recv on c: rank 0"));
  EXPECT_FALSE(supervisor.cause_known());
}

TEST_F(SupervisorTest, ANodeThatIsGoneExplainsLostConnectionsButNotARanksOwnEnd) {
  supervisor.receive(
      "a",
      Hello{
          .role = ControlRole::agent, .node = "n1", .host = "h", .pid = 5, .generation = 1, .step_pid = 77});
  join(0, 10);
  supervisor.child_ended(78, 256);
  EXPECT_FALSE(supervisor.failure());
  supervisor.receive("p0", Failure{.rank = 0, .node = "n1", .pid = 10, .text = "lost", .peer_lost = true});
  supervisor.child_ended(77, 9);
  EXPECT_THAT(supervisor.failure().value(), HasSubstr("agent on n1"));
  EXPECT_FALSE(supervisor.cause_known());
  supervisor.process_ended("n1", 10, 9);
  EXPECT_THAT(supervisor.failure().value(), HasSubstr("rank 0 on n1"));
}

TEST_F(SupervisorTest, ARankThatEndsBecauseItWasToldToIsNotTheCause) {
  join(0, 10);
  join(1, 11);
  supervisor.receive("p0", Failure{.rank = 0, .text = "connection to rank 1 lost", .peer_lost = true});
  supervisor.told_to_end();
  supervisor.process_ended("n1", 10, 256);
  EXPECT_THAT(supervisor.failure().value(), HasSubstr("connection to rank 1 lost"));
}

TEST_F(SupervisorTest, ARankThatEndsAfterItFinishedIsNoFailure) {
  join(0, 10);
  supervisor.receive("p0", Finished{.rank = 0});
  supervisor.process_ended("n1", 10, 0);
  EXPECT_FALSE(supervisor.failure());
}

TEST_F(SupervisorTest, TheSameProcessIdOnAnotherNodeIsAnotherProcess) {
  join(0, 10);
  supervisor.process_ended("n2", 10, 9);
  EXPECT_FALSE(supervisor.failure());
}

TEST_F(SupervisorTest, AnEndThatOvertakesTheHelloIsStillAFailure) {
  supervisor.process_ended("n1", 10, 256);
  EXPECT_FALSE(supervisor.failure());
  join(0, 10);
  EXPECT_THAT(supervisor.failure().value(), HasSubstr("rank 0 on n1"));
}

TEST_F(SupervisorTest, TheSummaryCountsOnlyRankZerosStepsAndLeavesTheWarmUpOut) {
  join(0, 10);
  join(1, 11);
  const double times[] = {9, 9, 9, 1, 2, 3};
  for (int i = 0; i < 6; ++i) {
    supervisor.receive("p0", StepReport{.rank = 0, .step = i + 1, .loss = 5.0 - i, .step_s = times[i]});
    supervisor.receive("p1",
                       StepReport{.rank = 1, .step = i + 1, .loss = 99, .step_s = 99, .peak_rss_bytes = 7});
  }
  EXPECT_EQ(supervisor.take_progress().size(), 6u);
  EXPECT_TRUE(supervisor.take_progress().empty());
  const RunSummary summary = supervisor.summarize();
  EXPECT_EQ(summary.steps, 6);
  EXPECT_EQ(summary.first_loss, 5.0);
  EXPECT_EQ(summary.last_loss, 0.0);
  EXPECT_EQ(summary.measured_iteration_s, 2.0);
  EXPECT_EQ(summary.mean_iteration_s, 2.0);
  EXPECT_EQ(summary.tokens_per_s, 16.0);
  ASSERT_EQ(summary.ranks.size(), 2u);
  EXPECT_EQ(summary.ranks[1].peak_rss_bytes, 7);
}

TEST_F(SupervisorTest, NotesStandBetweenTheStepsAndSayHowFarTrainingIs) {
  join(0, 10);
  EXPECT_EQ(supervisor.last_step(), 0);
  supervisor.receive("p0", Note{.rank = 0, .step = 7, .text = "going on after step 7"});
  EXPECT_EQ(supervisor.last_step(), 7);
  supervisor.receive("p0", StepReport{.rank = 0, .step = 8, .step_s = 1});
  supervisor.receive("p1", Note{.rank = 1, .step = 8, .text = "the same, as another rank has it"});
  supervisor.receive("p0", Note{.rank = 0, .step = 8, .text = "written"});
  const auto progress = supervisor.take_progress();
  ASSERT_EQ(progress.size(), 3u);
  EXPECT_EQ(std::get<Note>(progress[0]).text, "going on after step 7");
  EXPECT_EQ(std::get<StepReport>(progress[1]).step, 8);
  EXPECT_EQ(std::get<Note>(progress[2]).text, "written");
  EXPECT_EQ(supervisor.last_step(), 8);
  EXPECT_EQ(supervisor.steps_done(), 1) << "of this run";
}

TEST_F(SupervisorTest, ATraceIsCompleteWhenEveryRankHasReportedItsTasks) {
  const TracedTask task{TaskKind::forward, 3, 1.5, 2};
  supervisor.receive("a", StepReport{.rank = 0, .step = 7, .tasks = {task}});
  supervisor.receive("a", StepReport{.rank = 0, .step = 8});
  EXPECT_EQ(supervisor.take_trace(), std::nullopt);
  supervisor.receive("b", StepReport{.rank = 1, .step = 7, .tasks = {task, task}});
  const auto trace = supervisor.take_trace();
  ASSERT_TRUE(trace.has_value());
  EXPECT_EQ(trace->at(1).size(), 2u);
  EXPECT_EQ(supervisor.take_trace(), std::nullopt);
}

TEST_F(SupervisorTest, ANewGenerationStartsItsFiguresAnewAndIgnoresTheOldOnesMessages) {
  join(0, 10);
  join(1, 11);
  supervisor.receive("p0", StepReport{.rank = 0, .step = 1, .loss = 5, .step_s = 1});
  supervisor.receive("p0", Finished{.rank = 0});
  Plan less = plan;
  less.pipelines[0].stages[0].shape.tp = 1;
  less.pipelines[0].stages[0].gpus = {1};
  supervisor.begin_generation(2, less, {Hello{.rank = 1, .node = "n1", .pid = 11}});
  EXPECT_TRUE(supervisor.all_joined());
  supervisor.receive("p1", Finished{.generation = 1, .rank = 0});
  supervisor.receive("p1", StepReport{.generation = 1, .rank = 0, .step = 2, .loss = 4});
  supervisor.receive("p1", Failure{.generation = 1, .rank = 0, .text = "old news"});
  supervisor.receive("p1", Note{.generation = 1, .rank = 0, .step = 9, .text = "old news"});
  EXPECT_FALSE(supervisor.all_finished());
  EXPECT_FALSE(supervisor.failure());
  EXPECT_EQ(supervisor.last_step(), 1);
  supervisor.receive("p1", StepReport{.generation = 2, .rank = 0, .step = 2, .loss = 3, .step_s = 2});
  supervisor.receive("p1", Finished{.generation = 2, .rank = 0});
  EXPECT_TRUE(supervisor.all_finished());
  const RunSummary summary = supervisor.summarize();
  EXPECT_EQ(summary.steps, 2);
  EXPECT_EQ(summary.last_loss, 3);
  EXPECT_EQ(summary.measured_iteration_s, 2) << "of the plan that is in force";
  EXPECT_DOUBLE_EQ(summary.training_s, 3);
  ASSERT_EQ(summary.ranks.size(), 1u);
}

TEST_F(SupervisorTest, AStepThatOnlyAnotherRankReportedIsProgressWhenRankZeroIsGone) {
  join(0, 10);
  join(1, 11);
  supervisor.receive("p0", StepReport{.rank = 0, .step = 1, .loss = 5});
  supervisor.receive("p1", StepReport{.rank = 1, .step = 1, .loss = 5});
  supervisor.receive("p1", StepReport{.rank = 1, .step = 2, .loss = 4});
  EXPECT_EQ(supervisor.take_progress().size(), 1u);
  supervisor.begin_generation(2, plan, {});
  const auto progress = supervisor.take_progress();
  ASSERT_EQ(progress.size(), 1u);
  EXPECT_EQ(std::get<StepReport>(progress[0]).step, 2);
}

TEST_F(SupervisorTest, AProcessThatJoinsLaterIsNoRankYet) {
  join(0, 10);
  supervisor.receive("p9", Hello{.rank = -1, .node = "n1", .pid = 99});
  EXPECT_EQ(supervisor.missing_ranks(), std::vector<int>{1});
}

}  // namespace
}  // namespace sailor
