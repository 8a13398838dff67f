// The ranks of another trainer's program, as an agent starts, signals and kills them.
#include "trainer/launch/agent_programs.h"

#include <gmock/gmock.h>
#include <sys/wait.h>

#include <csignal>
#include <filesystem>
#include <vector>

#include "planner/process/scratch_directory.h"
#include "planner/process/subprocess.h"

namespace sailor {
namespace {

namespace fs = std::filesystem;

struct AgentProgramsTest : testing::Test {
  ScratchDirectory scratch;
  std::string ready = scratch.path() + "/ready";
  std::vector<ProgramsReport> reports;
  AgentPrograms programs{scratch.path() + "/log", [this](const ProgramsReport& r) { reports.push_back(r); }};

  void start(const std::string& script, int generation = 1) {
    programs.start({.node = "n1",
                    .generation = generation,
                    .command = {"/bin/sh", "-c", script},
                    .environment = {{"READY", ready}, {"CODE", "5"}}});
  }
  void wait_for_the_end() {
    int status = 0;
    const pid_t child = waitpid(-1, &status, 0);
    EXPECT_TRUE(programs.child_ended(child, status));
  }
  void wait_until_ready() {
    while (!fs::exists(ready)) usleep(10'000);
  }
};

TEST_F(AgentProgramsTest, ReportsStartAndEnd) {
  start("exit $CODE", 4);
  ASSERT_EQ(reports.size(), 1u);
  EXPECT_EQ(reports[0].exit_code, std::nullopt);
  wait_for_the_end();
  ASSERT_EQ(reports.size(), 2u);
  EXPECT_EQ(reports[1].node, "n1");
  EXPECT_EQ(reports[1].generation, 4);
  EXPECT_EQ(reports[1].exit_code, 5);
  EXPECT_FALSE(programs.forward(SIGUSR1)) << "nobody is there";
  EXPECT_FALSE(programs.child_ended(1, 0)) << "another child";
}

TEST_F(AgentProgramsTest, AProgramThatCannotBeStartedHasEnded) {
  programs.start({.node = "n1", .generation = 1, .command = {scratch.path() + "/absent"}, .environment = {}});
  ASSERT_FALSE(reports.empty());
  if (!reports.back().exit_code) wait_for_the_end();
  EXPECT_EQ(reports.back().exit_code, 127);
}

TEST_F(AgentProgramsTest, SignalsOfItsGenerationReachIt) {
  start("trap 'exit 9' USR1; touch $READY; while :; do sleep 0.01; done", 2);
  wait_until_ready();
  programs.signal({"n1", 1, SIGKILL, 0});  // of another generation
  programs.tick();
  EXPECT_EQ(reports.size(), 1u);
  programs.signal({"n1", 2, SIGUSR1, std::nullopt});
  EXPECT_FALSE(programs.waiting());
  wait_for_the_end();
  EXPECT_EQ(reports.back().exit_code, 9);
}

TEST_F(AgentProgramsTest, WhatDoesNotEndInTimeIsKilledWithAllThatItStarted) {
  become_subreaper();
  start("trap '' TERM; (trap '' TERM; sleep 600) & touch $READY; while :; do sleep 0.01; done");
  wait_until_ready();
  programs.signal({"n1", 1, SIGTERM, 0.05});
  EXPECT_TRUE(programs.waiting());
  usleep(100'000);
  programs.tick();
  EXPECT_EQ(reports.back().exit_code, 128 + SIGKILL);
  EXPECT_FALSE(programs.waiting());
  EXPECT_THAT(child_processes(), testing::IsEmpty());
}

TEST_F(AgentProgramsTest, RanksDoNotOutliveTheirParent) {
  become_subreaper();
  start("sleep 600 & touch $READY; wait");
  wait_until_ready();
  programs.forward(SIGKILL);
  wait_for_the_end();
  EXPECT_EQ(reports.back().exit_code, 128 + SIGKILL);
  EXPECT_THAT(child_processes(), testing::IsEmpty());
}

TEST_F(AgentProgramsTest, AStartEndsWhatAnEarlierGenerationLeft) {
  become_subreaper();  // or the shell's child lives on, with the output on which the test's parent waits
  start("sleep 600");
  start("exit 0", 2);
  wait_for_the_end();
  ASSERT_EQ(reports.size(), 4u);
  EXPECT_EQ(reports[1].generation, 1);
  EXPECT_EQ(reports[1].exit_code, 128 + SIGKILL);
  EXPECT_EQ(reports[3].generation, 2);
  EXPECT_EQ(reports[3].exit_code, 0);
}

}  // namespace
}  // namespace sailor
