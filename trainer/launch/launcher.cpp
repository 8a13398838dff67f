#include "trainer/launch/launcher.h"

#include <fmt/format.h>
#include <unistd.h>

#include <optional>
#include <stdexcept>

#include "planner/plan/rank_layout.h"
#include "planner/process/program_path.h"
#include "planner/process/subprocess.h"

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
  int ranks = 0;
  for (const HostRanks& host : hosts) ranks += host.ranks;
  if (geteuid() == 0) command.push_back("--allow-run-as-root");
  // Only the bootstrap runs over MPI: plain TCP suffices, and nodes that share a host name must not try
  // shared memory.
  command.insert(command.end(), {"--mca", "pml", "ob1", "--mca", "btl", "self,tcp"});
  // Collectives by levels (nodes, ranks of a node): with one rank on each of two nodes of one host name,
  // those of Open MPI 5.0.7 never end.
  command.insert(command.end(), {"--mca", "coll", "^han"});
  // Ranks wait for the last one without taking the processor from it. Open MPI 4 does so by itself when there
  // are more ranks than processors.
  command.insert(command.end(), {"--mca", "mpi_yield_when_idle", "1"});
  const auto daemons = daemon_options(mpirun.release, local ? "" : agent_program + " remote-shell");
  command.insert(command.end(), daemons.begin(), daemons.end());
  command.insert(command.end(), {"--host", local ? fmt::format("localhost:{}", ranks) : to_text(hosts)});
  command.insert(command.end(), {"--oversubscribe", "--bind-to", "none", "-np", std::to_string(ranks)});
  command.insert(command.end(), program.begin(), program.end());
  return command;
}

std::vector<std::string> local_command(size_t ranks, const std::vector<std::string>& program) {
  if (const std::optional<Mpirun> mpirun = find_mpirun())
    return mpirun_command(*mpirun, {{"localhost", static_cast<int>(ranks)}}, "", program);
  std::vector<std::string> command = {program_path("sailor-agent"), "local-ranks", std::to_string(ranks)};
  command.insert(command.end(), program.begin(), program.end());
  return command;
}

std::vector<std::string> job_command(const std::vector<HostRanks>& hosts,
                                     const std::vector<std::string>& program) {
  const std::string agent = program_path("sailor-agent");
  if (const std::optional<Mpirun> mpirun = find_mpirun()) {
    if (agent.find(' ') != std::string::npos)
      throw std::runtime_error(
          fmt::format("{}: mpirun cannot start a program whose path has spaces; install elsewhere", agent));
    return mpirun_command(*mpirun, hosts, agent, program);
  }
  std::vector<std::string> command = {agent, "node-ranks", to_text(hosts)};
  command.insert(command.end(), program.begin(), program.end());
  return command;
}

std::vector<HostRanks> hosts_of(const Plan& plan) {
  const RankLayout layout(plan);
  std::vector<HostRanks> hosts;
  for (const std::string& node : layout.nodes())
    hosts.push_back({node, static_cast<int>(layout.ranks_on(node).size())});
  return hosts;
}

pid_t start_ranks(const LaunchRequest& request) {
  // When mpirun of Open MPI 5 fails, it interrupts all of its process group.
  SpawnOptions options{
      .environment = request.environment, .output_file = request.log_file, .own_group = true};
  options.environment["SAILOR_NODES"] = to_text(request.nodes);
  options.environment["SAILOR_LAUNCH"] = request.local ? "local" : "slurm";
  const std::string rank_program = program_path("sailor-rank");
  if (request.local) {
    const auto ranks = static_cast<size_t>(num_ranks(request.plan));
    return spawn(local_command(ranks, {rank_program}), options);
  }
  return spawn(job_command(hosts_of(request.plan), {rank_program}), options);
}

StepSpec node_step(const std::string& host, const std::vector<std::string>& command,
                   const std::vector<AllocatedNode>& nodes, const std::string& agent_program) {
  const Allocation allocation{"", nodes};
  const AllocatedNode* node = allocation.find(host);
  if (!node) throw std::runtime_error(fmt::format("node {} does not belong to this job", host));
  StepSpec step{*node, {}};
  if (!agent_program.empty()) step.command = {agent_program, "node"};
  step.command.insert(step.command.end(), command.begin(), command.end());
  return step;
}

StepSpec remote_shell_step(const std::string& host, const std::string& command,
                           const std::vector<AllocatedNode>& nodes, const std::string& agent_program) {
  const std::string text = agent_program.empty() ? fmt::format(kInOwnDirectory, command) : command;
  return node_step(host, {"sh", "-c", text}, nodes, agent_program);
}

}  // namespace sailor
