#include "trainer/launch/node_ranks.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>

#include "planner/process/scratch_directory.h"
#include "planner/process/subprocess.h"
#include "planner/spec/error.h"
#include "planner/spec/quantity.h"
#include "trainer/launch/local_ranks.h"
#include "trainer/process/signals.h"

namespace sailor {
namespace {

namespace fs = std::filesystem;

constexpr double kEndSteps_s = 3;  // between SIGTERM and SIGKILL
constexpr int kLook_ms = 20;       // between two looks into the directory

// Where the ranks meet: all nodes see it.
fs::path meeting_prefix() {
  const char* run_directory = std::getenv("SAILOR_RUN_DIRECTORY");
  return fs::absolute(run_directory ? run_directory : ".") / ".start-";
}

// The exit code of the start on a node; nothing while it goes on.
std::optional<int> code_of_start(const std::string& file) {
  std::ifstream in(file);
  int code = 0;
  if (in >> code) return code;
  return std::nullopt;
}

struct EndedSteps {
  int code = 0;  // of one that failed
  bool all = false;
};
EndedSteps reap_steps() {
  EndedSteps ended;
  int status = 0;
  pid_t pid;
  while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
    if (status != 0) ended.code = exit_code_of(status);
  ended.all = pid < 0;
  return ended;
}

}  // namespace

std::string to_text(const std::vector<HostRanks>& hosts) {
  std::string text;
  for (const HostRanks& host : hosts)
    text += fmt::format("{}{}:{}", text.empty() ? "" : ",", host.node, host.ranks);
  return text;
}

std::vector<HostRanks> parse_host_ranks(const std::string& text) {
  std::vector<HostRanks> hosts;
  std::istringstream entries(text);
  for (std::string entry; std::getline(entries, entry, ',');) {
    const size_t colon = entry.rfind(':');
    const std::optional<double> ranks =
        colon == std::string::npos ? std::nullopt : parse_number(entry.substr(colon + 1));
    if (!ranks || !(*ranks >= 1 && *ranks <= kMaxLocalRanks) || *ranks != static_cast<int>(*ranks))
      throw InputError(fmt::format("\"{}\": must be NODE:RANKS", entry));
    hosts.push_back({entry.substr(0, colon), static_cast<int>(*ranks)});
  }
  return hosts;
}

int run_node_ranks(const std::vector<HostRanks>& hosts, const std::vector<std::string>& program,
                   const std::string& agent_program, bool with_agents) {
  SignalDescriptor signals({SIGCHLD, SIGTERM, SIGINT});
  const ScratchDirectory place(meeting_prefix());
  int total = 0;
  for (const HostRanks& host : hosts) total += host.ranks;
  std::vector<std::string> starts;  // files that appear when a node's ranks have started
  int first = 0;
  for (const HostRanks& host : hosts) {
    std::vector<std::string> command = {agent_program, "step",        host.node,
                                        agent_program, "local-ranks", std::to_string(host.ranks)};
    command.insert(command.end(), program.begin(), program.end());
    spawn(command, {.environment = {{"SAILOR_RENDEZVOUS", place.path()},
                                    {"SAILOR_RANKS", std::to_string(total)},
                                    {"SAILOR_RANK", std::to_string(first)}}});
    starts.push_back(start_file(place.path(), first));
    first += host.ranks;
  }
  int code = 0;
  while (!starts.empty() && code == 0) {
    pollfd waiting{signals.descriptor(), POLLIN, 0};
    poll(&waiting, 1, kLook_ms);
    for (const int signal : signals.take())
      if (signal != SIGCHLD) code = 128 + signal;
    const EndedSteps ended = reap_steps();
    if (code == 0) code = ended.code;
    std::erase_if(starts, [&code](const std::string& file) {
      const std::optional<int> start = code_of_start(file);
      if (start && code == 0) code = *start;
      return start.has_value();
    });
    if (ended.all && !starts.empty() && code == 0) code = kFailed;  // a step did not run its command
  }
  if (code != 0) {
    end_all_children(kEndSteps_s);
  } else if (!with_agents) {
    while (wait(nullptr) > 0) {
    }
  }
  return code;
}

}  // namespace sailor
