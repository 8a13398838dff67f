#include "trainer/launch/local_ranks.h"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

#include "planner/process/scratch_directory.h"
#include "planner/process/subprocess.h"
#include "trainer/process/signals.h"

namespace sailor {
namespace {

constexpr double kGrace_s = 3;  // between SIGTERM and SIGKILL

int exit_code(int wait_status) {
  return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

}  // namespace

int run_local_ranks(int ranks, const std::vector<std::string>& program) {
  SignalDescriptor signals({SIGCHLD, SIGTERM, SIGINT});
  const ScratchDirectory meeting_place;
  int code = 0, left = 0;
  for (; left < ranks; ++left) {
    spawn(program, {.environment = {{"SAILOR_RENDEZVOUS", meeting_place.path()},
                                    {"SAILOR_RANKS", std::to_string(ranks)},
                                    {"SAILOR_RANK", std::to_string(left)}}});
  }
  while (left > 0 && code == 0) {
    pollfd waiting{signals.descriptor(), POLLIN, 0};
    poll(&waiting, 1, -1);
    for (const int signal : signals.take()) {
      if (signal != SIGCHLD) code = 128 + signal;
    }
    int status = 0;
    while (waitpid(-1, &status, WNOHANG) > 0) {
      --left;
      if (code == 0) code = exit_code(status);
    }
  }
  end_all_children(kGrace_s);
  return code;
}

}  // namespace sailor
