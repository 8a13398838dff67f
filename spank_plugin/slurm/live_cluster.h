// The live Slurm cluster for the planner: the snapshot of what a new job of this user could get, and the data
// to request the nodes of a plan. Pure: the input is a SlurmView.
//
// Nodes are offered completely or not at all. A node that runs any job is listed in Snapshot::not_free with
// the reason, as are nodes that are down, drained, reserved, powered off or planned for another job, and
// those that the user's own options exclude. Nodes that only need waiting are also in Snapshot::busy.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "planner/spec/site_config.h"
#include "planner/spec/snapshot.h"
#include "spank_plugin/slurm/partition_rules.h"
#include "spank_plugin/slurm/slurm_view.h"

namespace sailor {

// The user's requests for the allocation.
struct NodeWishes : PartitionWishes {
  std::vector<std::string> only_nodes;  // --nodelist; empty = all
  std::vector<std::string> excluded_nodes;
  std::string features;          // --constraint (feature_expression.h); empty = any
  std::optional<int> max_nodes;  // of the whole job; live_cluster() ignores it, the planner chooses the nodes
  // Also nodes that run jobs now or are powered down: the job will wait for them.
  bool include_busy = false;
};

struct LivePartition {
  std::string name;
  std::optional<int> max_nodes;
  std::vector<std::string> nodes;  // those in the snapshot
};

struct LiveNode {
  std::string name;
  std::string gres;  // as a request for all GPUs of the node: gpu:TYPE:4
};

struct LiveCluster {
  int64_t now = 0;                        // seconds since the epoch
  Snapshot snapshot;                      // partition of a node: the first one, except the umbrella partition
  std::vector<LivePartition> partitions;  // open to the user, in Slurm's order, the umbrella partition last
  std::vector<LiveNode> nodes;            // parallel to snapshot.nodes
};

// Throws InputError when a requested partition, node or reservation does not exist or is not open to the
// user, and for an invalid feature expression.
LiveCluster live_cluster(const SlurmView& view, const SiteConfig& site, const NodeWishes& wishes);

// Requirements on a node's state in addition to "up".
struct StateNeeds {
  bool in_reservation = false;  // the job uses the reservation that the node is in
  bool now = true;              // powered-down nodes do not qualify
};
// Why a node in this state accepts no new job (or not yet); nothing if it does. Allocated nodes do.
std::optional<std::string> state_obstacle(uint32_t node_state, const StateNeeds& needs = {});

// Why the node is not available now because of other jobs: it runs one, or is about to; nothing if it is
// idle.
std::optional<std::string> use_by_others(const SlurmNode& node);
// The same without jobs that only wait for it.
std::optional<std::string> use_by_running_jobs(const SlurmNode& node);

// Ignores that these nodes are planned: a pending job that was cancelled leaves NODE_STATE_PLANNED on its
// nodes until Slurm's next backfill cycle (SchedulerParameters bf_interval, 30 s by default).
void forget_planned(std::vector<SlurmNode>& nodes, const std::set<std::string>& names);

// Ignores the jobs that run on these nodes: a planned job that ends has them completely.
void forget_running(std::vector<SlurmNode>& nodes, const std::set<std::string>& names);

}  // namespace sailor
