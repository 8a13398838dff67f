#include "trainer/launch/local_ranks.h"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

#include <cstdlib>
#include <optional>

#include "planner/process/scratch_directory.h"
#include "planner/process/subprocess.h"
#include "planner/spec/text_file.h"
#include "trainer/process/signals.h"

namespace sailor {
namespace {

constexpr double kGrace_s = 3;  // between SIGTERM and SIGKILL
// Where a library has started threads when it was loaded, they may be given SIGCHLD, and it is lost.
constexpr int kLookAgain_ms = 100;

}  // namespace

std::string start_file(const std::string& directory, int first) {
  return directory + "/started-" + std::to_string(first);
}

int run_local_ranks(int ranks, const std::vector<std::string>& program) {
  SignalDescriptor signals({SIGCHLD, SIGTERM, SIGINT});
  const char* meeting = std::getenv("SAILOR_RENDEZVOUS");
  const std::optional<std::string> given = meeting ? std::optional<std::string>(meeting) : std::nullopt;
  std::optional<ScratchDirectory> own;
  if (!given) own.emplace();
  const int first = given ? std::stoi(std::getenv("SAILOR_RANK")) : 0;
  const std::string all = given ? std::getenv("SAILOR_RANKS") : std::to_string(ranks);
  int code = 0, left = 0;
  for (; left < ranks; ++left) {
    spawn(program, {.environment = {{"SAILOR_RENDEZVOUS", given ? *given : own->path()},
                                    {"SAILOR_RANKS", all},
                                    {"SAILOR_RANK", std::to_string(first + left)}}});
  }
  while (left > 0 && code == 0) {
    pollfd waiting{signals.descriptor(), POLLIN, 0};
    poll(&waiting, 1, kLookAgain_ms);
    for (const int signal : signals.take()) {
      if (signal != SIGCHLD) code = 128 + signal;
    }
    int status = 0;
    while (waitpid(-1, &status, WNOHANG) > 0) {
      --left;
      if (code == 0) code = exit_code_of(status);
    }
  }
  end_all_children(kGrace_s);
  if (given) write_file_atomically(start_file(*given, first), std::to_string(code) + "\n");
  return code;
}

}  // namespace sailor
