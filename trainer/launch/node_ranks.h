// Ranks on the nodes of a job without mpirun: a step of the job on every node starts that node's ranks
// (local_ranks.h), and all meet in a directory that all nodes see (comm/directory_bootstrap.h).
#pragma once

#include <string>
#include <vector>

namespace sailor {

struct HostRanks {
  std::string node;
  int ranks = 0;
};
// "n1:3,n2:1", as mpirun's --host takes it. parse_host_ranks() throws InputError.
std::string to_text(const std::vector<HostRanks>& hosts);
std::vector<HostRanks> parse_host_ranks(const std::string& text);

// Starts `program` on every host, the given number of times. Returns 0 when all have succeeded; ranks that
// have detached go on, in steps with an agent. When one fails, or on SIGTERM or SIGINT, ends all and returns
// another code. `agent_program` is sailor-agent. The directory of the meeting is made in
// SAILOR_RUN_DIRECTORY, else in the working directory. Throws std::runtime_error.
int run_node_ranks(const std::vector<HostRanks>& hosts, const std::vector<std::string>& program,
                   const std::string& agent_program, bool with_agents);

}  // namespace sailor
