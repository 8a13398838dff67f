// sailor-agent node COMMAND...          run COMMAND as the agent of this node (trainer/launch/agent.h)
// sailor-agent remote-shell HOST COMMAND...   become a step that runs COMMAND under an agent on HOST
// (mpirun calls this)
// sailor-agent local-ranks N COMMAND...  run COMMAND N times on this machine (trainer/launch/local_ranks.h)
// sailor-agent helper ...               keep a helper job (trainer/launch/helper_job.h)
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include "planner/process/subprocess.h"
#include "planner/scheduler/scheduler.h"
#include "planner/spec/error.h"
#include "planner/spec/quantity.h"
#include "trainer/launch/agent.h"
#include "trainer/launch/helper_job.h"
#include "trainer/launch/launcher.h"
#include "trainer/launch/local_ranks.h"
#include "trainer/launch/open_mpi.h"

namespace {

// Without its domain.
std::string host_name() {
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  const std::string whole = name.data();
  return whole.substr(0, whole.find('.'));
}

int remote_shell(std::vector<std::string> arguments) {
  // mpirun may put options of its own before the host.
  while (!arguments.empty() && arguments.front().starts_with("-")) arguments.erase(arguments.begin());
  if (arguments.size() < 2) throw sailor::InputError("sailor-agent remote-shell: needs HOST and COMMAND");
  const char* nodes = std::getenv("SAILOR_NODES");
  if (!nodes) throw std::runtime_error("SAILOR_NODES is not set: this program is started by sailor run");
  std::string command =
      fmt::format("{}", fmt::join(std::vector<std::string>(arguments.begin() + 1, arguments.end()), " "));
  if (sailor::node_name() != host_name()) command = sailor::with_node_name_of_slurm(command);
  const std::string self = std::filesystem::read_symlink("/proc/self/exe");
  const sailor::StepSpec step =
      sailor::remote_shell_step(arguments.front(), command, sailor::parse_allocated_nodes(nodes),
                                std::getenv("SAILOR_NO_AGENTS") != nullptr ? "" : self);
  // This process becomes the step: by its number the controller knows whose step has ended.
  setenv("SAILOR_STEP_PID", std::to_string(getpid()).c_str(), 1);
  sailor::become_program(sailor::site_scheduler().step_command(step));
}

}  // namespace

int main(int argc, char** argv) try {
  const std::string mode = argc > 1 ? argv[1] : "";
  const std::vector<std::string> rest(argv + std::min(argc, 2), argv + argc);
  if (mode == "node" && !rest.empty()) return sailor::run_agent(rest);
  if (mode == "remote-shell") return remote_shell(rest);
  if (mode == "local-ranks" && rest.size() > 1) {
    const std::optional<double> ranks = sailor::parse_number(rest.front());
    if (!ranks || !(*ranks >= 1 && *ranks <= 4096) || *ranks != static_cast<int>(*ranks))
      throw sailor::InputError("sailor-agent local-ranks: needs a number of ranks, not " + rest.front());
    return sailor::run_local_ranks(static_cast<int>(*ranks), {rest.begin() + 1, rest.end()});
  }
  if (mode == "helper")
    return sailor::keep_helper_job(sailor::site_scheduler(), sailor::parse_keeper(rest),
                                   std::filesystem::read_symlink("/proc/self/exe"));
  std::cerr
      << "usage: sailor-agent node COMMAND... | remote-shell HOST COMMAND... | local-ranks N COMMAND... | "
         "helper ...   (started by sailor run)\n";
  return sailor::kBadInput;
} catch (const std::exception& e) {
  std::cerr << "sailor-agent: " << e.what() << '\n';
  return sailor::kFailed;
}
