// The keeper of a helper job, in a simulated cluster.
#include "trainer/launch/helper_job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cstdlib>

#include "planner/scheduler/simulated_scheduler.h"

namespace sailor {
namespace {

TEST(HelperJob, TheKeepersCommandLineSaysWhatIsAsked) {
  HelperRequest request{.main_job = "17", .node = "n4"};
  request.end_s = 99;
  request.account = "us";
  request.gpus = 2;
  request.gres = "gpu:a";
  request.cpus = 8;
  request.memory_mb = 4096;
  const auto command = keeper_command("/x/sailor-agent", request);
  const HelperRequest back = parse_keeper({command.begin() + 2, command.end()});
  EXPECT_EQ(back.main_job, "17");
  EXPECT_EQ(back.node, "n4");
  EXPECT_EQ(back.end_s, 99);
  EXPECT_EQ(back.account, "us");
  EXPECT_EQ(back.partition, "");
  EXPECT_EQ(back.gpus, 2);
  EXPECT_EQ(back.gres, "gpu:a");
  EXPECT_EQ(back.cpus, 8);
  EXPECT_EQ(back.memory_mb, 4096);
  EXPECT_THROW(parse_keeper({"17"}), std::runtime_error);
}

struct KeptHelperJob : testing::Test {
  SimulatedCluster cluster{{.nodes = {{.name = "n1", .cpus = 8}, {.name = "n2", .cpus = 8}},
                            .partitions = {{.name = "p", .nodes = {"n1", "n2"}}}}};
  SimulatedScheduler scheduler{cluster};
  const std::string main_job = cluster.submit({});

  // As a process that is told to end at once, while it waits for its step.
  int keep() {
    sigset_t end;
    sigemptyset(&end);
    sigaddset(&end, kEndHelperJob);
    sigprocmask(SIG_BLOCK, &end, nullptr);
    raise(kEndHelperJob);
    scheduler.enter(main_job);
    return keep_helper_job(scheduler, {.main_job = main_job, .node = "n2"}, "/x/sailor-agent");
  }
};

// In processes of their own: a keeper blocks signals.
TEST_F(KeptHelperJob, TheAgentRunsOnItsNodeUntilTheKeeperIsToldToEnd) {
  EXPECT_EXIT(
      {
        const int exit_code = keep();
        EXPECT_EQ(exit_code, 0);
        ASSERT_EQ(scheduler.steps().size(), 1u);
        const SimulatedScheduler::Step& step = scheduler.steps().begin()->second;
        EXPECT_EQ(step.node, "n2");
        EXPECT_THAT(step.command, testing::ElementsAre("/x/sailor-agent", "node", "sh", "-c", "true"));
        EXPECT_EQ(step.environment.at("SAILOR_HELPER_JOB"), step.job);
        EXPECT_EQ(step.environment.at("SAILOR_STEP_PID"), std::to_string(getpid()));
        EXPECT_EQ(cluster.find_job(step.job)->state, JobState::cancelled);
        EXPECT_EQ(cluster.find_job(main_job)->state, JobState::running);
        EXPECT_FALSE(scheduler.own_job()) << "its step would be taken for one of the main job";
        _exit(HasFailure() ? 1 : 0);
      },
      testing::ExitedWithCode(0), "");
}

TEST_F(KeptHelperJob, ARefusalIsTold) {
  cluster.submit({});  // on n2
  EXPECT_EXIT(
      {
        const int exit_code = keep();
        _exit(exit_code == 1 && scheduler.steps().empty() ? 0 : 9);
      },
      testing::ExitedWithCode(0), "node n2 cannot be had now");
}

TEST_F(KeptHelperJob, AnAgentEndsTheHelperJobThatItIsIn) {
  end_own_helper_job(scheduler);
  EXPECT_EQ(cluster.find_job(main_job)->state, JobState::running);
  setenv("SAILOR_HELPER_JOB", main_job.c_str(), 1);
  end_own_helper_job(scheduler);
  unsetenv("SAILOR_HELPER_JOB");
  EXPECT_EQ(cluster.find_job(main_job)->state, JobState::cancelled);
}

}  // namespace
}  // namespace sailor
