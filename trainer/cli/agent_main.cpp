// The agent of a node, and the small programs with which ranks are started (trainer/launch):
//
//     sailor-agent node COMMAND...              runs COMMAND as the agent of this node (agent.h)
//     sailor-agent remote-shell HOST COMMAND... for mpirun: a step that runs COMMAND on HOST under an agent
//     sailor-agent step HOST COMMAND...         the same for a command that needs no shell
//     sailor-agent node-ranks HOST:N,... COMMAND...   runs COMMAND on nodes of this job (node_ranks.h)
//     sailor-agent local-ranks N COMMAND...     runs COMMAND N times on this machine (local_ranks.h)
//     sailor-agent programs COMMAND...          ranks of another training program, of this node (programs.h)
//     sailor-agent helper REQUEST               keeps a helper job (helper_job.h)
//     sailor-agent helper-node                  the script of a helper job
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
#include "trainer/launch/node_ranks.h"
#include "trainer/launch/open_mpi.h"
#include "trainer/launch/programs.h"

namespace {

// Without its domain.
std::string host_name() {
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  const std::string whole = name.data();
  return whole.substr(0, whole.find('.'));
}

std::string own_path() {
  return std::filesystem::read_symlink("/proc/self/exe");
}

bool with_agents() {
  return std::getenv("SAILOR_NO_AGENTS") == nullptr;
}

std::string agent_of_steps() {
  return with_agents() ? own_path() : "";
}

std::vector<sailor::AllocatedNode> nodes_of_job() {
  const char* nodes = std::getenv("SAILOR_NODES");
  if (!nodes) throw std::runtime_error("SAILOR_NODES is not set: this program is started by sailor run");
  return sailor::parse_allocated_nodes(nodes);
}

// By the number of this process the controller knows whose step has ended.
[[noreturn]] void become_step(const sailor::StepSpec& step) {
  setenv("SAILOR_STEP_PID", std::to_string(getpid()).c_str(), 1);
  sailor::become_program(sailor::site_scheduler().step_command(step));
}

[[noreturn]] void remote_shell(std::vector<std::string> arguments) {
  // mpirun may put options of its own before the host.
  while (!arguments.empty() && arguments.front().starts_with("-")) arguments.erase(arguments.begin());
  if (arguments.size() < 2) throw sailor::InputError("sailor-agent remote-shell: needs HOST and COMMAND");
  const std::string host = arguments.front();
  arguments.erase(arguments.begin());
  std::string command = fmt::format("{}", fmt::join(arguments, " "));
  if (sailor::node_name() != host_name()) command = sailor::with_node_name_of_slurm(command);
  become_step(sailor::remote_shell_step(host, command, nodes_of_job(), agent_of_steps()));
}

}  // namespace

int main(int argc, char** argv) try {
  const std::string mode = argc > 1 ? argv[1] : "";
  const std::vector<std::string> rest(argv + std::min(argc, 2), argv + argc);
  if (mode == "node" && !rest.empty()) return sailor::run_agent(rest);
  if (mode == "remote-shell") remote_shell(rest);
  if (mode == "step" && rest.size() > 1)
    become_step(
        sailor::node_step(rest.front(), {rest.begin() + 1, rest.end()}, nodes_of_job(), agent_of_steps()));
  if (mode == "node-ranks" && rest.size() > 1)
    return sailor::run_node_ranks(sailor::parse_host_ranks(rest.front()), {rest.begin() + 1, rest.end()},
                                  own_path(), with_agents());
  if (mode == "local-ranks" && rest.size() > 1) {
    const std::optional<double> ranks = sailor::parse_number(rest.front());
    if (!ranks || !(*ranks >= 1 && *ranks <= sailor::kMaxLocalRanks) || *ranks != static_cast<int>(*ranks))
      throw sailor::InputError("sailor-agent local-ranks: needs a number of ranks, not " + rest.front());
    return sailor::run_local_ranks(static_cast<int>(*ranks), {rest.begin() + 1, rest.end()});
  }
  if (mode == "programs" && !rest.empty()) return sailor::run_programs_of_node(sailor::node_name(), rest);
  if (mode == "helper")
    return sailor::keep_helper_job(sailor::site_scheduler(), sailor::parse_keeper(rest), own_path());
  if (mode == "helper-node") {
    const sailor::StepSpec step = sailor::helper_step(sailor::site_scheduler(), own_path());
    sailor::become_program(sailor::site_scheduler().step_command(step));
  }
  std::cerr << "usage: sailor-agent node COMMAND... | remote-shell HOST COMMAND... | step HOST COMMAND... | "
               "node-ranks HOST:N,... COMMAND... | local-ranks N COMMAND... | programs COMMAND... | "
               "helper REQUEST | helper-node   (started by sailor run)\n";
  return sailor::kBadInput;
} catch (const std::exception& e) {
  std::cerr << "sailor-agent: " << e.what() << '\n';
  return sailor::kFailed;
}
