// Starts one process per rank on the nodes of a plan: Open MPI's mpirun in the batch step, with steps of the
// job (scheduler.h) as its remote shell. Unlike Slurm's own launcher, it works for any order of the
// components of a heterogeneous job. mpirun is needed for the bootstrap only: the ranks detach
// (detached_start.h) and mpirun ends. Without it, ranks meet in a directory (node_ranks.h, local_ranks.h).
#pragma once

#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

#include "planner/plan/plan.h"
#include "planner/scheduler/jobs.h"
#include "trainer/launch/node_ranks.h"
#include "trainer/launch/open_mpi.h"

namespace sailor {

struct LaunchRequest {
  const Plan& plan;
  bool local = false;                              // all ranks on this machine, no Slurm
  std::vector<AllocatedNode> nodes;                // ignored when local
  std::map<std::string, std::string> environment;  // for agents and ranks
  std::string log_file;                            // output of the launcher, and of ranks before they detach
};

// Starts the launcher and returns its pid at once; the caller reaps it. Requires a placed plan unless local.
// Throws std::runtime_error.
pid_t start_ranks(const LaunchRequest& request);

// Open MPI's command line that starts `program` (with its arguments) on every host, the given number of
// times, over srun and `agent_program`. If that is empty: on this machine, whatever the names of the hosts.
std::vector<std::string> mpirun_command(const Mpirun& mpirun, const std::vector<HostRanks>& hosts,
                                        const std::string& agent_program,
                                        const std::vector<std::string>& program);

// Starts that many ranks of `program` on this machine: with mpirun, or with the agent if SAILOR_MPIRUN is
// "none" or this was built without MPI. Throws std::runtime_error if a program is missing.
std::vector<std::string> local_command(size_t ranks, const std::vector<std::string>& program);

// The command that starts `program` on the nodes of this job, over their steps: with mpirun, or likewise
// with the agent (node_ranks.h). Throws std::runtime_error if a program is missing.
std::vector<std::string> job_command(const std::vector<HostRanks>& hosts,
                                     const std::vector<std::string>& program);

// The nodes of a placed plan.
std::vector<HostRanks> hosts_of(const Plan& plan);

// The step that runs `command` on `host`, under an agent unless `agent_program` is empty. Throws
// std::runtime_error for a host that is not among `nodes`.
StepSpec node_step(const std::string& host, const std::vector<std::string>& command,
                   const std::vector<AllocatedNode>& nodes, const std::string& agent_program);
// The same for a command of mpirun's remote shell.
StepSpec remote_shell_step(const std::string& host, const std::string& command,
                           const std::vector<AllocatedNode>& nodes, const std::string& agent_program);

}  // namespace sailor
