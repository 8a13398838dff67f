// slurmctld's view of the cluster as plain values, which live_cluster.h turns into a snapshot. Tests write
// one by hand; read_slurm() reads it from the controller. Times are seconds since the epoch.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "spank_plugin/slurm/accounting.h"
#include "spank_plugin/slurm/commands/job_share.h"

namespace sailor {

struct SlurmNode {
  std::string name;
  uint32_t state = 0;  // NODE_STATE_* base and flags
  int allocated_cpus = 0;
  int cpus = 0;           // that jobs can have
  int64_t memory_mb = 0;  // the same
  int64_t allocated_memory_mb = 0;
  bool of_another_user = false;  // whose jobs share it with nobody
  std::string gres;              // e.g. gpu:NAME:4
  std::string gres_used;
  std::vector<std::string> features;
  uint32_t promised_to = 0;  // a job that requests this node by name and waits only for its nodes; 0 = none
  // Time limit of the last job on the node; nothing = one has none, or none is visible.
  std::optional<int64_t> jobs_end;
  std::string leaf_switch;  // from Slurm's topology; empty if it has none
};

// What a job needs of a node.
struct NodeNeeds {
  bool whole = true;  // all of it
  // By gres_name() (node_use.h); "gpu" = of any one type. Empty = at least one of any type.
  std::map<std::string, int> gpus;
  int cpus = 1;
  int64_t memory_mb = 0;
};

// What Slurm says a job waits for.
enum class WaitReason { none_yet, nodes, other };

// A job that waits for nodes, and could start as far as its user is concerned; of a heterogeneous job, one
// component.
struct SlurmWaitingJob {
  uint32_t priority = 0;
  int nodes = 1;
  std::string partition;           // the first that it names
  std::vector<std::string> names;  // nodes that it asks for, or that Slurm plans to give it; empty = any
  std::optional<int64_t> start;    // expected by Slurm
  std::optional<double> limit_s;   // nothing = none, or that of the partition

  uint32_t job = 0;  // of a component: the job's
  std::string job_name{};
  WaitReason reason = WaitReason::none_yet;
  std::vector<std::string> partitions{};            // all that it names
  NodeNeeds needs{};                                // of each node
  std::string features{};                           // --constraint
  std::vector<std::string> required{}, excluded{};  // nodes
  bool in_reservation = false;
};

struct SlurmPartition {
  bool operator==(const SlurmPartition&) const = default;

  std::string name;
  bool up = true;
  bool is_default = false;
  bool whole_nodes = false;  // OverSubscribe=EXCLUSIVE
  bool root_only = false;
  bool needs_reservation = false;
  std::vector<std::string> allowed_accounts;  // empty = all except the denied ones
  std::vector<std::string> denied_accounts;
  std::vector<std::string> allowed_qos;  // the same
  std::vector<std::string> denied_qos;
  std::optional<int> max_nodes;
  std::optional<double> max_time_s;
  std::optional<double> default_time_s;
  std::string qos;              // the partition's; empty = none
  std::string limit;            // of an account or QOS, that the job exceeds here; empty = none
  std::string billing_weights;  // TRESBillingWeights; empty = Slurm counts CPUs
  // Memory of jobs that ask for none; 0 and 0 = that of the node.
  int64_t memory_per_cpu_mb = 0, memory_per_node_mb = 0;
  std::vector<std::string> nodes;
};

struct SlurmReservation {
  bool operator==(const SlurmReservation&) const = default;

  std::string name;
  int64_t start = 0;
  int64_t end = 0;
  std::vector<std::string> nodes;
  std::string partition;  // jobs in it must use this one; empty = any
};

// What changes only when administrators change it.
struct ClusterSetup {
  bool operator==(const ClusterSetup&) const = default;

  std::vector<SlurmPartition> partitions;  // visible to the user
  std::vector<SlurmReservation> reservations;
  std::map<std::string, std::string> leaf_switches;  // of Slurm's topology, by node
};

struct SlurmView {
  int64_t now = 0;
  bool largest_weight_counts = false;  // PriorityFlags=MAX_TRES
  int64_t backfill_resolution_s = 60;
  std::vector<SlurmNode> nodes;
  std::vector<SlurmWaitingJob> queue;      // highest priority first
  std::vector<SlurmPartition> partitions;  // visible to the user
  std::vector<SlurmReservation> reservations;
  std::optional<Accounting> accounting;  // nothing = no limits of accounts
  // What the running helper jobs of one job (read_queue()) hold, by node.
  std::map<std::string, JobShare> helper_shares{};
};

// Initialises libslurm. Not needed in Slurm's own programs and their plugins.
void initialise_slurm();

// Query the controller as the calling user. Need an initialised libslurm in the process. Throw
// std::runtime_error with Slurm's reason.
SlurmView read_slurm();
// With a setup that is known: nodes, jobs, and where limits are enforced accounts.
SlurmView read_slurm(const ClusterSetup& setup);
// In two RPCs, three where Slurm has a topology.
ClusterSetup read_setup();
// Only the nodes, in one RPC: no job is known to wait for one, and none has `jobs_end`.
std::vector<SlurmNode> read_nodes();
// Jobs, for nodes that were just read. `helpers_of`: the job whose `helper_shares` to read, with the
// partitions if a job waits for nodes. Empty = none.
SlurmView read_queue(std::vector<SlurmNode> nodes, const std::string& helpers_of = "");
// The rest.
SlurmView read_slurm(SlurmView queue);

// Slurm's host lists: `n[1-3],x` -> n1 n2 n3 x, and back.
std::vector<std::string> expand_hosts(const std::string& hosts);
std::string compress_hosts(std::vector<std::string> names);

}  // namespace sailor
