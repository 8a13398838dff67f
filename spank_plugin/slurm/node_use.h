// What other jobs use of a node, and what is left of it for a new one. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "spank_plugin/slurm/commands/job_share.h"
#include "spank_plugin/slurm/slurm_view.h"

namespace sailor {

// The GPUs of one type of a node.
struct NodeGpus {
  std::string type;  // Slurm's; empty = none
  int count = 0;
  int used = 0;

  int free() const { return count > used ? count - used : 0; }
};

// In Slurm's order. MIG slices are types of their own.
std::vector<NodeGpus> gpus_of(const SlurmNode& node);
// Name of one of them in a request: `gpu:TYPE`, or `gpu`.
std::string gres_name(const NodeGpus& gpus);
// Does a request of this name (NodeNeeds::gpus) fit these GPUs?
bool names_gpus(const std::string& request, const NodeGpus& gpus);

// Why the node is not available now because of other jobs: one has or will have what the job needs; nothing
// if it is available.
std::optional<std::string> use_by_others(const SlurmNode& node, const NodeNeeds& needs);
// The same without jobs that only wait for it.
std::optional<std::string> use_by_running_jobs(const SlurmNode& node, const NodeNeeds& needs);

// One line of text about all nodes that could have something free, as far as nodes themselves say. The same
// text means that nothing was freed or taken.
std::string free_parts(const std::vector<SlurmNode>& nodes);

// Ignores that these nodes are planned: a pending job that was cancelled leaves NODE_STATE_PLANNED on its
// nodes until Slurm's next backfill cycle (SchedulerParameters bf_interval, 30 s by default).
void forget_planned(std::vector<SlurmNode>& nodes, const std::set<std::string>& names);

// Ignores what a job holds that will have ended.
void forget_job(std::vector<SlurmNode>& nodes, const std::map<std::string, JobShare>& shares);

}  // namespace sailor
