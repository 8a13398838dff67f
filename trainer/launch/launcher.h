// Starts one process per rank on the nodes of a plan: Open MPI's mpirun in the batch step, with steps of the
// job (scheduler.h) as its remote shell. It works for any order of the components of a heterogeneous job,
// where Slurm's own launcher does not. mpirun is needed for the bootstrap only: the ranks detach
// (detached_start.h) and mpirun ends. On one machine alone it can be done without (local_ranks.h).
#pragma once

#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

#include "planner/plan/plan.h"
#include "planner/scheduler/jobs.h"

namespace sailor {

struct LaunchRequest {
  const Plan& plan;
  bool local = false;                              // all ranks on this machine, no Slurm
  std::vector<AllocatedNode> nodes;                // ignored when local
  std::map<std::string, std::string> environment;  // for agents and ranks
  std::string log_file;  // output of the launch and of ranks until they have detached
};

// Starts the launcher and returns its process id at once; the caller reaps it. Requires a placed plan unless
// local. Throws std::runtime_error.
pid_t start_ranks(const LaunchRequest& request);

struct HostRanks {
  std::string node;
  size_t ranks = 0;
};
// Open MPI's command line that starts `program` (with its arguments) on every host as often as it says, over
// srun by way of `agent_program`; on this machine, whatever the hosts are called, when that is empty.
std::vector<std::string> mpirun_command(const std::string& mpirun, const std::vector<HostRanks>& hosts,
                                        const std::string& agent_program,
                                        const std::vector<std::string>& program);

// Starts that many ranks of `program` on this machine: by mpirun, or by the agent where SAILOR_MPIRUN is
// "none" or this was built without MPI. Throws std::runtime_error when a program is missing.
std::vector<std::string> local_command(size_t ranks, const std::vector<std::string>& program);

// The launcher's command line for the nodes of a placed plan, for explanations and tests.
std::vector<std::string> launch_command(const LaunchRequest& request, const std::string& mpirun,
                                        const std::string& agent_program, const std::string& rank_program);

// The step in which the remote shell runs `command` on `host`, under an agent unless `agent_program` is
// empty. Throws std::runtime_error for a host that is not among `nodes`.
StepSpec remote_shell_step(const std::string& host, const std::string& command,
                           const std::vector<AllocatedNode>& nodes, const std::string& agent_program);

}  // namespace sailor
