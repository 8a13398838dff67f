// The live Slurm cluster for the planner: the snapshot of what a new job of this user could get, and the data
// to request the nodes of a plan. Pure: the input is a SlurmView.
//
// A node that other jobs use in part is offered with what is left: GPUs, processors and memory. Where jobs
// take whole nodes (partition, site or user), it is offered completely or not at all. A node with GPUs of
// several types has an entry for each. Nodes of which nothing is left are listed in Snapshot::not_free with
// the reason, as are those that are down, drained, reserved, powered off or planned for another job, and
// those that the user's own options exclude. Nodes that only need waiting are also in Snapshot::busy.
//
// Limits of QOS and associations that hold for the whole job are in Snapshot::limits; where a limit leaves no
// room for a node, it is the reason in not_free.
//
// The free GPUs of a shared node are numbered from 0, as the steps of a job number theirs: which of them
// Slurm gives to a job is known only when it starts.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "planner/spec/site_config.h"
#include "planner/spec/snapshot.h"
#include "spank_plugin/slurm/account_limits.h"
#include "spank_plugin/slurm/node_use.h"
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
  bool whole_nodes = false;          // --exclusive
  std::optional<int> cpus_per_rank;  // --cpus-per-task
  bool memory_is_given = false;      // --mem, --mem-per-cpu
  bool least_time_is_given = false;  // --time-min
};

// A GPU node, whatever its state: what distinguishes it from other nodes in a request.
struct PartitionNode {
  std::string name;
  std::string zone;
  std::map<std::string, int> gpus;  // all of them, by name in requests (gres_name())
  std::vector<std::string> features;
};

struct LivePartition {
  std::string name;
  std::optional<int> max_nodes;
  std::vector<std::string> nodes;  // those in the snapshot
  bool whole_nodes = false;        // jobs take whole nodes, by the partition, the site or the user
  // Nodes that Slurm could give to the job at any time, if it chose among all nodes of the partition.
  std::vector<PartitionNode> all{};
};

struct LiveCluster {
  // Nothing if there is no limit.
  std::optional<int> max_nodes() const {
    const auto limit = limits.find("node");
    return limit == limits.end() ? std::nullopt : std::optional<int>(limit->second.most);
  }

  int64_t now = 0;    // seconds since the epoch
  Snapshot snapshot;  // partition of a node: the first one of `partitions`
  // Of QOS and associations on the whole job, by TRES: nodes, processors, memory, components.
  std::map<std::string, JobLimit> limits;
  std::vector<std::string> notes;         // for people
  std::vector<LivePartition> partitions;  // open to the user, in the order of usable_partitions()
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

}  // namespace sailor
