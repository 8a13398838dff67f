// The live Slurm cluster as the planner sees it: the snapshot of what a new job of this user could get, and
// what is needed to ask Slurm for the nodes of a plan. Pure: the input is a SlurmView.
//
// In this version a node is offered whole or not at all: one that runs any job is listed in
// Snapshot::not_free with the reason, as are nodes that are down, drained, reserved, powered off or planned
// for another job.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "planner/spec/site_config.h"
#include "planner/spec/snapshot.h"
#include "spank_plugin/slurm/slurm_view.h"

namespace sailor {

// What the user said about the allocation.
struct NodeWishes {
  std::vector<std::string> partitions;  // only these; empty = all that are open
  std::vector<std::string> excluded_nodes;
  std::optional<double> time_limit_s;  // of the job; partitions that do not allow it are left out
  bool include_busy = false;           // also nodes that run jobs now: the job will wait for them
};

struct LivePartition {
  std::string name;
  std::optional<int> max_nodes;
  std::vector<std::string> nodes;  // those that the snapshot offers
};

struct LiveNode {
  std::string name;
  std::string gres;  // as a request for all GPUs of the node: gpu:TYPE:4
};

struct LiveCluster {
  Snapshot snapshot;                      // partition of a node: the first one that is not the umbrella
  std::vector<LivePartition> partitions;  // open to the user, in Slurm's order, the umbrella last
  std::vector<LiveNode> nodes;            // parallel to snapshot.nodes
};

// Throws InputError when a wished-for partition does not exist or is not open to the user.
LiveCluster live_cluster(const SlurmView& view, const SiteConfig& site, const NodeWishes& wishes);

// Why a node in this state takes no new job (or none yet); nothing when it does. Allocated nodes do.
std::optional<std::string> state_obstacle(uint32_t node_state);

}  // namespace sailor
