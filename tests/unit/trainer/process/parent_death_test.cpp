#include "trainer/process/parent_death.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

namespace sailor {
namespace {

// A process that starts a child, from a thread that ends or from its main thread. Tests reap both.
struct ParentDeath : testing::Test {
  int started[2] = {}, told[2] = {};
  pid_t parent = 0, child = 0;

  [[noreturn]] void be_the_child() {
    end_with_parent();
    const char here = 1;
    if (write(started[1], &here, 1) != 1) _exit(1);
    for (;;) pause();
  }
  void start_child() {
    child = fork();
    if (child == 0) be_the_child();
    char here = 0;
    if (::read(started[0], &here, 1) != 1) _exit(1);
  }
  [[noreturn]] void be_the_parent(bool in_thread) {
    if (in_thread)
      std::thread([this] { start_child(); }).join();
    else
      start_child();
    if (write(told[1], &child, sizeof child) != sizeof child) _exit(1);
    for (;;) pause();
  }
  void start(bool in_thread) {
    ASSERT_EQ(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    ASSERT_EQ(pipe(started), 0);
    ASSERT_EQ(pipe(told), 0);
    parent = fork();
    if (parent == 0) be_the_parent(in_thread);
    ASSERT_EQ(::read(told[0], &child, sizeof child), static_cast<ssize_t>(sizeof child));
  }
  void TearDown() override {
    for (const int end : {started[0], started[1], told[0], told[1]}) close(end);
  }
};

TEST_F(ParentDeath, AKilledParentEndsTheProcess) {
  start(/*in_thread=*/false);
  kill(parent, SIGKILL);
  int status = 0;
  ASSERT_EQ(waitpid(parent, nullptr, 0), parent);
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 128 + SIGKILL);
}

TEST_F(ParentDeath, TheEndOfTheThreadThatStartedItDoesNot) {
  start(/*in_thread=*/true);
  kill(child, SIGTERM);
  kill(parent, SIGKILL);
  int status = 0;
  ASSERT_EQ(waitpid(parent, nullptr, 0), parent);
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM) << status;
}

}  // namespace
}  // namespace sailor
