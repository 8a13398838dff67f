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
  request.excluded_nodes = {"n1", "n2"};
  request.feature = "a&b";
  request.end_s = 99;
  request.least_s = 600;
  request.account = "us";
  request.gpus = 2;
  request.gres = "gpu:a";
  request.whole_node = false;
  request.cpus = 8;
  request.memory_mb = 4096;
  request.output_file = "/a b/log";
  request.after_others = true;
  const auto command = keeper_command("/x/sailor-agent", request);
  const HelperRequest back = parse_keeper({command.begin() + 2, command.end()});
  EXPECT_EQ(back.main_job, "17");
  EXPECT_EQ(back.node, "n4");
  EXPECT_EQ(back.excluded_nodes, request.excluded_nodes);
  EXPECT_EQ(back.feature, "a&b");
  EXPECT_EQ(back.end_s, 99);
  EXPECT_EQ(back.least_s, 600);
  EXPECT_EQ(back.account, "us");
  EXPECT_EQ(back.partition, "");
  EXPECT_EQ(back.gpus, 2);
  EXPECT_EQ(back.gres, "gpu:a");
  EXPECT_FALSE(back.whole_node);
  EXPECT_EQ(back.cpus, 8);
  EXPECT_EQ(back.memory_mb, 4096);
  EXPECT_EQ(back.output_file, "/a b/log");
  EXPECT_TRUE(back.after_others);
  EXPECT_THROW(parse_keeper({"17"}), std::runtime_error);
  EXPECT_THROW(parse_keeper({"{}"}), std::runtime_error);
}

struct KeptHelperJob : testing::Test {
  SimulatedCluster cluster{{.nodes = {{.name = "n1", .cpus = 8}, {.name = "n2", .cpus = 8}},
                            .partitions = {{.name = "p", .nodes = {"n1", "n2"}}}}};
  SimulatedScheduler scheduler{cluster};
  const std::string main_job = cluster.submit({});

  // As a process that is told to end at once.
  int keep(const HelperRequest& request) {
    sigset_t end;
    sigemptyset(&end);
    sigaddset(&end, kEndHelperJob);
    sigprocmask(SIG_BLOCK, &end, nullptr);
    raise(kEndHelperJob);
    scheduler.enter(main_job);
    return keep_helper_job(scheduler, request, "/x/sailor-agent");
  }
};

// In processes of their own: a keeper blocks signals.
TEST_F(KeptHelperJob, IsCancelledWhenTheKeeperIsToldToEnd) {
  EXPECT_EXIT(
      {
        const int exit_code = keep({.main_job = main_job, .node = "n2"});
        EXPECT_EQ(exit_code, 0);
        const QueuedJob job = cluster.jobs().back();
        EXPECT_NE(job.id, main_job);
        EXPECT_THAT(job.nodes, testing::ElementsAre("n2"));
        EXPECT_EQ(job.state, JobState::cancelled);
        EXPECT_EQ(cluster.find_job(main_job)->state, JobState::running);
        EXPECT_FALSE(scheduler.own_job()) << "it would be submitted with the values of the main job";
        EXPECT_EQ(std::getenv("SAILOR_STEP_PID"), std::to_string(getpid()));
        EXPECT_STREQ(std::getenv("SAILOR_AGENT_PROGRAM"), "/x/sailor-agent");
        _exit(HasFailure() ? 1 : 0);
      },
      testing::ExitedWithCode(0), "");
}

TEST_F(KeptHelperJob, ARefusalIsTold) {
  EXPECT_EXIT(
      {
        const int exit_code = keep({.main_job = main_job, .partition = "q"});
        _exit(exit_code == 1 && cluster.jobs().size() == 1 ? 0 : 9);
      },
      testing::ExitedWithCode(0), "there is no partition q");
}

TEST_F(KeptHelperJob, RunsTheAgentOfItsNode) {
  const std::string helper = scheduler.submit_helper({.main_job = main_job, .node = "n2"});
  scheduler.enter(helper);
  const StepSpec step = helper_step(scheduler, "/x/sailor-agent");
  EXPECT_EQ(step.node.name, "n2");
  EXPECT_EQ(step.node.cpus, 8);
  EXPECT_THAT(step.command, testing::ElementsAre("/x/sailor-agent", "node", "sh", "-c", "true"));
  EXPECT_TRUE(in_helper_job());
  unsetenv("SAILOR_IN_HELPER_JOB");
}

TEST(HelperJob, ThatIsPreemptedHasItsGraceTimeToLeave) {
  SimulatedCluster cluster({.nodes = {{.name = "n"}},
                            .partitions = {{.name = "low",
                                            .nodes = {"n"},
                                            .preempted = SimulatedPartition::Preempted::cancelled,
                                            .grace_s = 300},
                                           {.name = "high", .nodes = {"n"}, .tier = 1}}});
  SimulatedScheduler scheduler(cluster);
  const std::string helper = cluster.submit({.partition = "low", .time_limit_s = 3600});
  scheduler.enter(helper);
  EXPECT_EQ(time_to_leave_s(scheduler, cluster.now_s(), 25), 25) << "it is told to leave, but not preempted";
  cluster.submit({.partition = "high"});
  EXPECT_EQ(time_to_leave_s(scheduler, cluster.now_s() + 1, 25), 299);
  EXPECT_EQ(time_to_leave_s(scheduler, cluster.now_s() + 290, 25), 25) << "Slurm kills it KillWait later";
}

}  // namespace
}  // namespace sailor
