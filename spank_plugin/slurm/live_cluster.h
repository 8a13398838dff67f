// The live Slurm cluster as the planner sees it: the snapshot of what a new job of this user could get, and
// what is needed to ask Slurm for the nodes of a plan. Pure: the input is a SlurmView.
//
// A node is offered whole or not at all: one that runs any job is listed in Snapshot::not_free with the
// reason, as are nodes that are down, drained, reserved, powered off or planned for another job, and those
// that the user's own options leave out. Those that only have to be waited for are also in Snapshot::busy.
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

// What the user said about the allocation.
struct NodeWishes : PartitionWishes {
  std::vector<std::string> only_nodes;  // --nodelist; empty = all
  std::vector<std::string> excluded_nodes;
  std::string features;          // --constraint (feature_expression.h); empty = any
  std::optional<int> max_nodes;  // of the whole job; live_cluster() leaves the choice of nodes to the planner
  // Also nodes that run jobs now or are powered down: the job will wait for them.
  bool include_busy = false;
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
  int64_t now = 0;                        // seconds since the epoch
  Snapshot snapshot;                      // partition of a node: the first one that is not the umbrella
  std::vector<LivePartition> partitions;  // open to the user, in Slurm's order, the umbrella last
  std::vector<LiveNode> nodes;            // parallel to snapshot.nodes
};

// Throws InputError when a wished-for partition, node or reservation does not exist or is not open to the
// user, and on a feature expression that is none.
LiveCluster live_cluster(const SlurmView& view, const SiteConfig& site, const NodeWishes& wishes);

// What the wishes ask of a state besides "up".
struct StateNeeds {
  bool in_reservation = false;  // the job uses the reservation that the node is in
  bool now = true;              // powered-down nodes are too late
};
// Why a node in this state takes no new job (or none yet); nothing when it does. Allocated nodes do.
std::optional<std::string> state_obstacle(uint32_t node_state, const StateNeeds& needs = {});

// Why the node cannot be had now because others use it: it runs a job, or is about to; nothing when it is
// idle.
std::optional<std::string> use_by_others(const SlurmNode& node);
// The same without those who only wait for it.
std::optional<std::string> use_by_running_jobs(const SlurmNode& node);

// Nobody plans these nodes any more: a pending job that was cancelled leaves NODE_STATE_PLANNED on its nodes
// until Slurm's next backfill cycle (SchedulerParameters bf_interval, 30 s by default).
void forget_planned(std::vector<SlurmNode>& nodes, const std::set<std::string>& names);

}  // namespace sailor
