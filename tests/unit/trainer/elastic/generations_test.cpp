// The course of a job in its controller: what is said and done when ranks come and go. Ranks are messages.
#include "trainer/elastic/generations.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "planner/plan/plan_json.h"
#include "planner/process/scratch_directory.h"
#include "planner/spec/text_file.h"
#include "tests/unit/trainer/elastic/controlled_job.h"

namespace sailor {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr int kKilled = 9;

// Two pipelines of one rank each, rank r with process 100 + r on node n0 or n1. The controller is on n0; the
// agent of n1 is process 7.
struct GenerationsTest : testing::Test {
  ScratchDirectory scratch;
  RunDirectory directory{scratch.path() + "/run"};
  JobSpec job = controlled_job(/*global_batch=*/8, /*steps=*/100);
  Plan plan = [] {
    Plan p;
    p.model = "m";
    p.global_batch = 8;
    p.microbatch = 2;
    for (const char* node : {"n0", "n1"}) {
      PlanStage stage;
      stage.end_layer = 6;
      stage.gpu_type = "A";
      stage.zone = "z";
      stage.node = node;
      stage.gpus = {0};
      p.pipelines.push_back({2, {stage}});
    }
    return p;
  }();
  ControlServer server{{.bind_address = "127.0.0.1"}};
  Supervisor supervisor{job, plan};
  std::ostringstream out;
  std::vector<std::string> started;  // places
  std::optional<Generations> generations;
  std::optional<bool> job_ends;  // as the scheduler says when it is asked
  int asked = 0;

  void begin(bool elastic) {
    Generations::Options options;
    options.members.node = "n0";
    options.members.start_process = [this](const StartProcess& what) {
      started.push_back(what.place);
      return 1;
    };
    options.job_must_end = [this] {
      ++asked;
      return job_ends.value_or(false);
    };
    if (elastic) options.replanning.emplace().site_config = "/nowhere/sailor.yaml";
    generations.emplace(job, plan, options, server, supervisor, directory, out);
    generations->receive("agent", Hello{.role = ControlRole::agent, .node = "n1", .pid = 6, .step_pid = 7});
  }
  void join(int rank) {
    generations->receive(
        peer(rank),
        Hello{.rank = rank, .node = node(rank), .pid = 100 + rank, .place = node(rank), .gpu = 0});
  }
  void train(int rank, int generation, int of_generation, int64_t steps_done = 0) {
    generations->receive(peer(rank), Started{.generation = generation,
                                             .rank = of_generation,
                                             .steps_done = steps_done,
                                             .state_from = "memory"});
  }
  // Both ranks train in generation 1 and have done two steps.
  void begin_training(bool elastic) {
    begin(elastic);
    for (const int rank : {0, 1}) join(rank);
    for (const int rank : {0, 1}) train(rank, 1, rank);
    generations->tick();
    for (const int64_t step : {1, 2})
      for (const int rank : {0, 1})
        generations->receive(peer(rank), StepReport{.rank = rank, .step = step, .step_s = 0.1});
  }
  // Rank 0 is lost, and rank 1 goes on with the initial values.
  void lose_the_state() {
    begin_training(true);
    generations->child_ended(100, kKilled);
    generations->tick();
    generations->receive("rank 1", Idle{.generation = 1, .rank = 1, .steps_done = 2});
    generations->tick();
    generations->receive("rank 1",
                         Started{.generation = 2, .rank = 0, .steps_done = 0, .state_from = "start"});
    generations->tick();
  }
  static std::string peer(int rank) { return "rank " + std::to_string(rank); }
  static std::string node(int rank) { return "n" + std::to_string(rank); }

  std::string failure() { return supervisor.failure().text().value_or(""); }
  std::vector<std::string> events() {
    std::vector<std::string> names;
    if (!std::filesystem::exists(directory.file("events.jsonl"))) return names;
    std::istringstream lines(read_text_file(directory.file("events.jsonl")));
    for (std::string line; std::getline(lines, line);)
      names.push_back(nlohmann::json::parse(line).at("event"));
    return names;
  }
};

TEST_F(GenerationsTest, AJobThatIsNotElasticFailsOfItsFirstLoss) {
  begin_training(false);
  EXPECT_FALSE(generations->goes_on());
  EXPECT_EQ(failure(), "");
  generations->child_ended(100, kKilled);
  generations->tick();
  EXPECT_THAT(failure(), HasSubstr("rank 0 on n0 (pid 100) was killed by signal 9"));
  EXPECT_TRUE(supervisor.failure().decided(0));
  EXPECT_THAT(started, IsEmpty());
  EXPECT_THAT(events(), IsEmpty()) << "events are those of elastic jobs";
  EXPECT_EQ(out.str(), "");
}

TEST_F(GenerationsTest, WithoutAnotherGenerationALostConnectionWaitsForItsCause) {
  begin_training(false);
  generations->receive("rank 0", Failure{.rank = 0, .text = "no answer", .peer_lost = true, .lost_peer = 1});
  generations->receive("rank 0", Idle{.generation = 1, .rank = 0, .steps_done = 2});
  generations->tick();
  EXPECT_FALSE(supervisor.failure().decided(0));
  generations->receive("agent", ProcessEnded{"n1", 101, kKilled});
  EXPECT_TRUE(supervisor.failure().decided(0));
  EXPECT_THAT(failure(), HasSubstr("rank 1 on n1 (pid 101) was killed"));
}

TEST_F(GenerationsTest, AnElasticJobWhoseFirstGenerationIsNotCompleteFailsAsAnyOther) {
  begin(true);
  join(0);
  generations->child_ended(100, kKilled);
  generations->tick();
  EXPECT_THAT(failure(), HasSubstr("rank 0 on n0 (pid 100) was killed"));
  EXPECT_THAT(started, IsEmpty());
  EXPECT_THAT(events(), IsEmpty());
}

// After its last holder, only the initial values are left.
TEST_F(GenerationsTest, AJobThatHasLostItsStateDoesNotTrainAgainFromTheBeginning) {
  lose_the_state();
  EXPECT_THAT(failure(), HasSubstr("the state after step 2 is lost"));
  EXPECT_THAT(failure(), HasSubstr("set checkpoint.directory"));
  EXPECT_THAT(events(), Not(testing::Contains("resumed")));
}

// A rank's message may be later than the first step of another.
TEST_F(GenerationsTest, ARankThatSaysLateThatItBeganIsNotOneThatBeginsAgain) {
  begin(true);
  for (const int rank : {0, 1}) join(rank);
  const auto starts = [&](int rank) {
    generations->receive(peer(rank), Started{.generation = 1, .rank = rank, .state_from = "start"});
  };
  starts(0);
  generations->receive(peer(0), StepReport{.generation = 1, .rank = 0, .step = 1, .step_s = 0.1});
  starts(1);
  generations->tick();
  EXPECT_EQ(failure(), "");
}

// The first checkpoint was not due yet.
TEST_F(GenerationsTest, AJobWithoutACheckpointYetBeginsAgain) {
  job.checkpoint.directory = "/nowhere";
  job.checkpoint.every_steps = 2;
  lose_the_state();
  EXPECT_EQ(failure(), "");
}

TEST_F(GenerationsTest, AnElasticJobGoesOnWithWhoIsLeft) {
  begin_training(true);
  EXPECT_TRUE(generations->goes_on());
  generations->child_ended(100, kKilled);
  generations->tick();
  EXPECT_THAT(started, ElementsAre("n0")) << "its GPU gets another process";
  generations->receive("rank 1", Idle{.generation = 1, .rank = 1, .steps_done = 2});
  generations->tick();
  EXPECT_EQ(num_ranks(generations->plan()), 1);
  EXPECT_EQ(generations->plan().pipelines[0].stages[0].node, "n1");
  EXPECT_EQ(load_plan(directory.file("plan.json")).pipelines.size(), 1u);
  train(1, 2, 0, 2);
  generations->tick();
  generations->receive("rank 1", StepReport{.generation = 2, .rank = 0, .step = 3, .step_s = 0.2});
  EXPECT_EQ(failure(), "");
  EXPECT_EQ(supervisor.progress().last_step(), 3);
  EXPECT_THAT(events(), ElementsAre("planning", "generation", "running", "lost", "restart", "interrupt",
                                    "generation", "running", "resumed"));
  EXPECT_THAT(out.str(), HasSubstr("elastic: lost rank 0 on n0 (pid 100): was killed by signal 9"));
  EXPECT_THAT(out.str(), HasSubstr("elastic: 1 ranks continue after step 2 (state from memory)"));
}

TEST_F(GenerationsTest, AnElasticJobGoesOnWithoutAGpuThatFailed) {
  begin_training(true);
  generations->receive("rank 0", Failure{.rank = 0,
                                         .text = "cudaMemcpyAsync: uncorrectable ECC error",
                                         .device_failed = true,
                                         .gpu_usable = false});
  generations->child_ended(100, kKilled);
  generations->receive("rank 1", Idle{.generation = 1, .rank = 1, .steps_done = 2});
  generations->tick();
  EXPECT_EQ(failure(), "");
  EXPECT_EQ(num_ranks(generations->plan()), 1);
  EXPECT_THAT(started, IsEmpty()) << "nothing is started on a GPU that failed";
  EXPECT_THAT(out.str(), HasSubstr("lost rank 0 on n0 (pid 100): cudaMemcpyAsync: uncorrectable ECC error"));
  EXPECT_THAT(out.str(), HasSubstr("GPU 0 of n0 is not used again"));
}

TEST_F(GenerationsTest, AGpuWithTooLittleMemoryGetsAnotherProcess) {
  begin_training(true);
  generations->receive("rank 0", Failure{.rank = 0, .text = "out of memory", .device_failed = true});
  EXPECT_THAT(started, IsEmpty()) << "the process has not ended yet";
  generations->child_ended(100, kKilled);
  EXPECT_EQ(failure(), "");
  EXPECT_THAT(started, ElementsAre("n0"));
}

TEST_F(GenerationsTest, WithoutAnotherGenerationTheFailureOfAGpuIsTheJobs) {
  begin_training(false);
  generations->receive("rank 0", Failure{.rank = 0, .text = "out of memory", .device_failed = true});
  EXPECT_THAT(failure(), HasSubstr("rank 0 on n0 (pid 100): out of memory"));
}

TEST_F(GenerationsTest, ANodesAgentTakesItsRanksWithIt) {
  begin_training(true);
  generations->child_ended(7, 256);
  generations->tick();
  EXPECT_THAT(out.str(), HasSubstr("lost rank 1 on n1 (pid 101): the Slurm step of the agent on n1 ended"));
  EXPECT_THAT(started, IsEmpty()) << "nobody can start a process there";
}

TEST_F(GenerationsTest, OnceItIsClosedWhoEndsIsNoLoss) {
  begin_training(true);
  generations->close();
  generations->child_ended(100, kKilled);
  generations->tick();
  EXPECT_THAT(events(), ElementsAre("planning", "generation", "running"));
  generations->log_end("finished", "");
  EXPECT_THAT(events(), ElementsAre("planning", "generation", "running", "ended"));
}

TEST_F(GenerationsTest, AJobThatIsToldToGoStopsAndPlansNothing) {
  job.checkpoint.directory = "checkpoints";
  begin_training(true);
  generations->stop_and_save(20);
  generations->tick();
  EXPECT_FALSE(generations->stopped());
  for (const int rank : {0, 1})
    generations->receive(peer(rank), Idle{.generation = 1, .rank = rank, .steps_done = 4});
  generations->tick();
  EXPECT_TRUE(generations->stopped());
  EXPECT_THAT(events(), ElementsAre("planning", "generation", "running", "told_to_go", "interrupt"));
}

TEST_F(GenerationsTest, AJobThatIsNotElasticStopsToo) {
  job.checkpoint.directory = "checkpoints";
  begin_training(false);
  generations->stop_and_save(20);
  generations->tick();
  generations->receive(peer(0), Idle{.generation = 1, .rank = 0, .steps_done = 4});
  generations->tick();
  EXPECT_FALSE(generations->stopped());
  generations->receive(peer(1), Idle{.generation = 1, .rank = 1, .steps_done = 4});
  generations->tick();
  EXPECT_TRUE(generations->stopped());
  EXPECT_EQ(failure(), "");
}

TEST_F(GenerationsTest, ARankMayTrainBeforeTheHelloOfAnotherArrives) {
  job.checkpoint.directory = "checkpoints";
  begin(true);
  join(0);
  train(0, 1, 0);
  generations->receive(peer(0), StepReport{.rank = 0, .step = 1, .step_s = 0.1});
  generations->tick();
  join(1);
  train(1, 1, 1);
  generations->tick();
  generations->stop_and_save(20);
  generations->tick();
  EXPECT_THAT(events(), ElementsAre("planning", "generation", "running", "told_to_go", "interrupt"));
  for (const int rank : {0, 1})
    generations->receive(peer(rank), Idle{.generation = 1, .rank = rank, .steps_done = 4});
  generations->tick();
  EXPECT_TRUE(generations->stopped());
}

TEST_F(GenerationsTest, ANodeThatLeavesAJobThatIsNotElasticStopsAllOfIt) {
  begin_training(false);
  EXPECT_FALSE(generations->told_to_leave());
  generations->receive("agent", Leaving{.node = "n1", .grace_s = 25});
  EXPECT_EQ(generations->told_to_leave().value().grace_s, 25);
}

TEST_F(GenerationsTest, ANodeThatLeavesAnElasticJobIsTakenOutAtTheEndOfAStep) {
  begin_training(true);
  generations->receive("agent", Leaving{.node = "n1", .grace_s = 25});
  generations->tick();
  EXPECT_FALSE(generations->told_to_leave());
  EXPECT_EQ(asked, 1) << "its only other node: it may be the whole job";
  EXPECT_THAT(events(), ElementsAre("planning", "generation", "running", "leaving", "interrupt"));
  for (const int rank : {0, 1})
    generations->receive(peer(rank), Idle{.generation = 1, .rank = rank, .steps_done = 4});
  generations->tick();
  EXPECT_EQ(num_ranks(generations->plan()), 1);
  EXPECT_EQ(generations->plan().pipelines.front().stages.front().node, "n0");
}

TEST_F(GenerationsTest, ANodeThatIsToldToLeaveDuringAChangeIsNotDismissedWhileThePlanUsesIt) {
  begin_training(true);
  generations->child_ended(100, kKilled);  // the change goes on without n0
  generations->tick();
  generations->receive("rank 1", Idle{.generation = 1, .rank = 1, .steps_done = 2});
  generations->tick();
  ASSERT_EQ(generations->plan().pipelines.front().stages.front().node, "n1");
  generations->receive("agent", Leaving{.node = "n1", .grace_s = 25});
  generations->tick();
  train(1, 2, 0, 2);
  generations->tick();
  generations->tick();
  const std::vector<std::string> all = events();
  EXPECT_EQ(std::count(all.begin(), all.end(), "interrupt"), 2) << "another change follows";
  EXPECT_EQ(std::count(all.begin(), all.end(), "lost"), 1);
}

TEST_F(GenerationsTest, WhenTheSchedulerEndsTheJobAllOfItStops) {
  job_ends = true;
  begin_training(true);
  generations->receive("agent", Leaving{.node = "n1", .grace_s = 25});
  EXPECT_EQ(generations->told_to_leave().value().grace_s, 25);
}

TEST_F(GenerationsTest, ASignalThatAsksForAnotherJobIsForAllNodesOfAnElasticJob) {
  begin_training(true);
  generations->receive("agent", Leaving{.node = "n1", .grace_s = 25, .continues = true});
  generations->tick();
  EXPECT_TRUE(generations->told_to_leave().value().continues);
  EXPECT_THAT(events(), ElementsAre("planning", "generation", "running")) << "no change of the plan";
}

TEST_F(GenerationsTest, AJobThatIsToldToGoDuringAChangeSavesAfterIt) {
  job.checkpoint.directory = "checkpoints";
  begin_training(true);
  generations->child_ended(100, kKilled);  // rank 0
  generations->tick();
  generations->stop_and_save(20);
  generations->tick();
  generations->receive(peer(1), Idle{.generation = 1, .rank = 1, .steps_done = 2});
  generations->tick();
  EXPECT_FALSE(generations->stopped()) << "nothing was saved";
  train(1, 2, 0, 2);
  generations->tick();
  generations->tick();
  EXPECT_THAT(events(), testing::Contains("running"));
  generations->receive(peer(1), Idle{.generation = 2, .rank = 0, .steps_done = 4});
  generations->tick();
  EXPECT_TRUE(generations->stopped());
}

}  // namespace
}  // namespace sailor
