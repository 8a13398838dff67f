#include "trainer/launch/launcher.h"

#include <fmt/format.h>
#include <unistd.h>

#include <optional>
#include <stdexcept>

#include "planner/plan/rank_layout.h"
#include "planner/process/subprocess.h"
#include "trainer/process/program_path.h"

namespace sailor {
namespace {

// Open MPI's daemon clears its session directory when it starts, and with it those of daemons that are
// starting on this host for the same job (agent.cpp does the same).
constexpr const char* kInOwnDirectory =
    "TMPDIR=$(mktemp -d) || exit 1; export TMPDIR; trap 'rm -rf \"$TMPDIR\"' EXIT; {}";

}  // namespace

std::vector<std::string> mpirun_command(const Mpirun& mpirun, const std::vector<HostRanks>& hosts,
                                        const std::string& agent_program,
                                        const std::vector<std::string>& program) {
  std::vector<std::string> command = {mpirun.path};
  const bool local = agent_program.empty();
  std::string host_list;
  size_t ranks = 0;
  for (const HostRanks& host : hosts) {
    host_list += fmt::format("{}{}:{}", host_list.empty() ? "" : ",", host.node, host.ranks);
    ranks += host.ranks;
  }
  if (geteuid() == 0) command.push_back("--allow-run-as-root");
  // Only the bootstrap runs over MPI: plain TCP suffices, and nodes that share a host name must not try
  // shared memory.
  command.insert(command.end(), {"--mca", "pml", "ob1", "--mca", "btl", "self,tcp"});
  const auto daemons = daemon_options(mpirun.release, local ? "" : agent_program + " remote-shell");
  command.insert(command.end(), daemons.begin(), daemons.end());
  command.insert(command.end(), {"--host", local ? fmt::format("localhost:{}", ranks) : host_list});
  command.insert(command.end(), {"--oversubscribe", "--bind-to", "none", "-np", std::to_string(ranks)});
  command.insert(command.end(), program.begin(), program.end());
  return command;
}

std::vector<std::string> local_command(size_t ranks, const std::vector<std::string>& program) {
  if (const std::optional<Mpirun> mpirun = find_mpirun())
    return mpirun_command(*mpirun, {{"localhost", ranks}}, "", program);
  std::vector<std::string> command = {program_path("sailor-agent"), "local-ranks", std::to_string(ranks)};
  command.insert(command.end(), program.begin(), program.end());
  return command;
}

std::vector<std::string> launch_command(const LaunchRequest& request, const Mpirun& mpirun,
                                        const std::string& agent_program, const std::string& rank_program) {
  const RankLayout layout(request.plan);
  std::vector<HostRanks> hosts;
  for (const std::string& node : layout.nodes()) hosts.push_back({node, layout.ranks_on(node).size()});
  return mpirun_command(mpirun, hosts, agent_program, {rank_program});
}

pid_t start_ranks(const LaunchRequest& request) {
  SpawnOptions options{.environment = request.environment, .output_file = request.log_file};
  options.environment["SAILOR_NODES"] = to_text(request.nodes);
  options.environment["SAILOR_LAUNCH"] = request.local ? "local" : "slurm";
  const std::string rank_program = program_path("sailor-rank");
  if (request.local) {
    const auto ranks = static_cast<size_t>(num_ranks(request.plan));
    return spawn(local_command(ranks, {rank_program}), options);
  }
  const std::string agent = program_path("sailor-agent");
  if (agent.find(' ') != std::string::npos)
    throw std::runtime_error(
        fmt::format("{}: mpirun cannot start a program whose path has spaces; install elsewhere", agent));
  return spawn(launch_command(request, required_mpirun(), agent, rank_program), options);
}

StepSpec remote_shell_step(const std::string& host, const std::string& command,
                           const std::vector<AllocatedNode>& nodes, const std::string& agent_program) {
  const Allocation allocation{"", nodes};
  const AllocatedNode* node = allocation.find(host);
  if (!node) throw std::runtime_error(fmt::format("node {} does not belong to this job", host));
  if (agent_program.empty()) return {*node, {"sh", "-c", fmt::format(kInOwnDirectory, command)}};
  return {*node, {agent_program, "node", "sh", "-c", command}};
}

}  // namespace sailor
