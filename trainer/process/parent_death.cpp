#include "trainer/process/parent_death.h"

#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

namespace sailor {
namespace {

volatile pid_t parent_of_this = 0;

void end_if_orphaned(int) {
  if (getppid() != parent_of_this) _exit(128 + SIGKILL);
}

}  // namespace

void end_with_parent() {
  parent_of_this = getppid();
  struct sigaction action {};
  action.sa_handler = end_if_orphaned;
  action.sa_flags = SA_RESTART;
  sigaction(SIGRTMAX, &action, nullptr);
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGRTMAX);
  sigprocmask(SIG_UNBLOCK, &signals, nullptr);
  prctl(PR_SET_PDEATHSIG, SIGRTMAX);
  end_if_orphaned(SIGRTMAX);
}

}  // namespace sailor
