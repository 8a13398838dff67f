// Starting programs, and leaving none behind.
#include "planner/process/subprocess.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace sailor {
namespace {

using testing::HasSubstr;

TEST(Subprocess, OutputAndFailureAreReported) {
  EXPECT_EQ(run_and_read({"echo", "hi"}), "hi\n");
  EXPECT_THROW(run_and_read({"false"}), std::runtime_error);
  EXPECT_THROW(run_and_read({"/nowhere/at/all"}), std::runtime_error);
  EXPECT_THAT(describe_wait_status(9), HasSubstr("signal 9"));
  EXPECT_THAT(describe_wait_status(3 << 8), HasSubstr("exit code 3"));
}

TEST(Subprocess, OutputIsToldAsItComes) {
  std::string text;
  // It waits until its first line was read.
  const std::string go = testing::TempDir() + "/go." + std::to_string(getpid());
  const int status = run_with_output(
      {"sh", "-c", "echo one; until [ -e " + go + " ]; do sleep 0.01; done; echo two; exit 3"},
      [&](std::string_view piece) {
        text += piece;
        if (text == "one\n") std::ofstream(go) << "go";
      });
  EXPECT_EQ(text, "one\ntwo\n");
  EXPECT_EQ(exit_code_of(status), 3);
  std::filesystem::remove(go);
  EXPECT_THROW(run_with_output({"sh", "-c", "echo; exec sleep 1000"},
                               [](std::string_view) { throw std::logic_error("enough"); }),
               std::logic_error);
  EXPECT_TRUE(child_processes().empty());
}

TEST(Subprocess, InAProcessGroupOfItsOwnOrOurs) {
  for (const bool own : {false, true}) {
    const pid_t pid = spawn({"sleep", "100"}, {.environment = {}, .own_group = own});
    EXPECT_EQ(getpgid(pid), own ? pid : getpgid(0));
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
  }
}

// In a process of its own: it becomes a subreaper and ends everything below it.
TEST(Subprocess, EndAllChildrenLeavesNoOrphanAlive) {
  const std::string pid_file = testing::TempDir() + "/orphan." + std::to_string(getpid());
  EXPECT_EXIT(
      {
        become_subreaper();
        // The shell ends at once; its background child ignores SIGTERM and is adopted.
        const pid_t shell = spawn({"sh", "-c", "(trap '' TERM; exec sleep 1000) & echo $! > " + pid_file});
        waitpid(shell, nullptr, 0);
        end_all_children(0.3);
        _exit(child_processes().empty() ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
  pid_t orphan = 0;
  std::ifstream(pid_file) >> orphan;
  ASSERT_GT(orphan, 0);
  EXPECT_EQ(kill(orphan, 0), -1);
  EXPECT_EQ(errno, ESRCH);
  std::filesystem::remove(pid_file);
}

}  // namespace
}  // namespace sailor
