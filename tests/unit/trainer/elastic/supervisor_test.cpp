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

  std::string failure() { return supervisor.failure().text().value_or(""); }

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
  EXPECT_EQ(failure(), "");
}

TEST_F(SupervisorTest, AKilledRankIsNamedWithNodeAndSignalAndBeatsItsEcho) {
  join(0, 10);
  join(1, 11);
  supervisor.unreachable(
      "p0",
      Failure{.rank = 0, .node = "n1", .pid = 10, .text = "connection to rank 1 lost", .peer_lost = true});
  EXPECT_FALSE(supervisor.failure().decided(0));
  EXPECT_THAT(failure(), HasSubstr("rank 0"));
  supervisor.process_ended("n1", 11, 9);
  EXPECT_TRUE(supervisor.failure().decided(0));
  EXPECT_THAT(failure(), HasSubstr("rank 1 on n1 (pid 11) was killed by signal 9"));
}

TEST_F(SupervisorTest, ANodeThatIsGoneExplainsLostConnectionsButNotARanksOwnEnd) {
  supervisor.receive(
      "a",
      Hello{
          .role = ControlRole::agent, .node = "n1", .host = "h", .pid = 5, .generation = 1, .step_pid = 77});
  join(0, 10);
  supervisor.child_ended(78, 256);
  EXPECT_EQ(failure(), "");
  supervisor.unreachable("p0",
                         Failure{.rank = 0, .node = "n1", .pid = 10, .text = "lost", .peer_lost = true});
  supervisor.child_ended(77, 9);
  EXPECT_THAT(failure(), HasSubstr("agent on n1"));
  EXPECT_FALSE(supervisor.failure().decided(0));
  supervisor.process_ended("n1", 10, 9);
  EXPECT_THAT(failure(), HasSubstr("rank 0 on n1"));
}

TEST_F(SupervisorTest, ASilentRankIsTheCauseUnlessItHasFinished) {
  join(0, 10);
  join(1, 11);
  supervisor.receive("p0", Finished{.rank = 0});
  supervisor.peer_silent("p0", 15);
  EXPECT_EQ(failure(), "");
  supervisor.peer_silent("p1", 15);
  EXPECT_EQ(failure(), "rank 1 on n1 (pid 11): no answer for 15 s");
}

TEST_F(SupervisorTest, ARankThatEndsAfterItFinishedIsNoFailure) {
  join(0, 10);
  supervisor.receive("p0", Finished{.rank = 0});
  supervisor.process_ended("n1", 10, 0);
  EXPECT_EQ(failure(), "");
}

TEST_F(SupervisorTest, TheSameProcessIdOnAnotherNodeIsAnotherProcess) {
  join(0, 10);
  supervisor.process_ended("n2", 10, 9);
  EXPECT_EQ(failure(), "");
}

TEST_F(SupervisorTest, AnEndThatOvertakesTheHelloIsStillAFailure) {
  supervisor.process_ended("n1", 10, 256);
  EXPECT_EQ(failure(), "");
  join(0, 10);
  EXPECT_THAT(failure(), HasSubstr("rank 0 on n1"));
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
  EXPECT_EQ(supervisor.progress().take().size(), 6u);
  EXPECT_TRUE(supervisor.progress().take().empty());
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

TEST_F(SupervisorTest, TheLimitOfMicrobatchesInFlightCountsChunks) {
  PlanStage& first = plan.pipelines[0].stages[0];
  first.shape.tp = 1;
  first.gpus = {0};
  PlanStage second = first;
  second.gpus = {1};
  plan.pipelines[0].stages = {first, second, first, second};
  plan.interleave = 2;
  supervisor.begin_generation(1, plan, {});
  join(0, 10);
  join(1, 11);
  const RunSummary summary = supervisor.summarize();
  ASSERT_EQ(summary.ranks.size(), 2u);
  EXPECT_EQ(summary.ranks[0].in_flight_limit, 4) << "two microbatches of two chunks";
  EXPECT_EQ(summary.ranks[1].in_flight_limit, 3);
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
  EXPECT_EQ(failure(), "");
  EXPECT_EQ(supervisor.progress().last_step(), 1);
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

TEST_F(SupervisorTest, AProcessThatJoinsLaterIsNoRankYet) {
  join(0, 10);
  supervisor.receive("p9", Hello{.rank = -1, .node = "n1", .pid = 99});
  EXPECT_EQ(supervisor.missing_ranks(), std::vector<int>{1});
}

}  // namespace
}  // namespace sailor
