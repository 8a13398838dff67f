// The cluster snapshot: the nodes, where they are, which of their GPUs are free, what they cost.
//
// It is made by spank_plugin/slurm from a live Slurm cluster, or read from a file. Value type. Nodes are in
// the order of the file (or of Slurm); the planner's result must not depend on that order.
//
//     sailor_snapshot: 1
//     nodes:
//       - {name: a1, partition: fast, zone: z1, region: r1, gpu_type: NAME, gpus: 4, free_gpus: [0, 1, 3],
//          switch: s1, price: spot, billing_units: 96}
//       - {name: "b[1-3,7]", zone: z1, gpu_type: NAME, gpus: 8}    # a host list of Slurm: b1, b2, b3, b7
//       - {name: c, count: 32, zone: z1, gpu_type: NAME, gpus: 8}  # c1 to c32
//       - {name: d1, zone: z1, gpu_type: NAME, gpus: 4, free_gpus: [0, 1], host: {gres: "gpu:a", cpus: 16,
//       memory: 64GiB}}
//     busy:                                         # nodes that other jobs use now
//       - {name: a2, zone: z1, gpu_type: NAME, gpus: 4, state: in use, free_in_s: 900}
//     queue:                                        # jobs that wait, in the scheduler's order
//       - {nodes: 2, names: "a[1-3]", start_in_s: 900, kept_in_s: 870, limit_s: 3600}  # or `partition:
//       fast`, or neither
//     limits:   # on the GPUs of a new job, by the scheduler's accounts; without a type: on all together
//       - {gpus: 6, gpu_type: NAME, reason: "QOS q allows 6 GPUs per user"}
//     time: 1764087000                              # when it was taken, in seconds since 1970
//     usd_per_hour: {NAME: {z1: 3.5}}              # one GPU, on demand; overrides the catalog
//     spot_usd_per_hour: {NAME: {z1: 1.5}}
//     billing: {usd_per_unit_hour: 0.2}            # price of nodes with billing_units
//     egress_usd_per_gb: {z1: {z2: 0.01}}          # absent pairs cost nothing
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace sailor {

// What of a node a new job could get with all of its free GPUs, and how the scheduler calls these. From a
// live cluster only.
struct HostOffer {
  std::string gres;          // request of one of its GPUs, as `gpu:a100`
  int cpus = 0;              // 0 = unknown
  int64_t memory_bytes = 0;  // 0 = unknown
};

struct SnapshotNode {
  std::string name;
  std::string partition;  // empty outside Slurm
  std::string zone;
  std::string region;  // the zone, if the file has none
  std::string gpu_type;
  int gpus = 0;                // GPUs that the node has
  std::vector<int> free_gpus;  // indices of those that a new job could get now, ascending
  std::string leaf_switch;     // nodes below one leaf switch are neighbours; empty = unknown
  // A job takes only the GPUs of its plan, else the whole node. In files the default for a node of which
  // some GPUs are free.
  bool shared = false;
  bool spot = false;         // spot prices apply, not those on demand
  double billing_units = 0;  // of the whole node, in Slurm's billing weights; 0 = unknown
  HostOffer host{};
};

// A node that other jobs use now and a new job could have later.
struct BusyNode {
  SnapshotNode node;                // as it will be: all of its GPUs free
  std::string state;                // "in use", ...
  std::optional<double> free_in_s;  // maximum time after the snapshot; nothing = unknown
  // The same for the jobs that run there, where others wait for the node; nothing = as free_in_s.
  std::optional<double> jobs_end_in_s{};
};

// A job that waits, and gets its nodes before a new one.
struct WaitingJob {
  int nodes = 1;
  std::vector<std::string> names{};    // nodes of which it takes some; empty = those of the partition
  std::string partition{};             // empty = any
  std::optional<double> start_in_s{};  // expected start; nothing = when its nodes come free
  // Jobs that would end later do not start on its nodes; nothing = from its start on.
  std::optional<double> kept_in_s{};
  std::optional<double> limit_s{};  // time limit; nothing = none
  bool is_new = false;              // the scheduler has not tried to start it yet
};

// A node of a helper job on which a waiting job would start if it were returned.
struct WantedNode {
  std::string node;
  std::string job;  // the scheduler's number of it

  bool operator==(const WantedNode&) const = default;
};

// The most GPUs that a new job may have.
struct GpuLimit {
  int gpus = 0;
  std::string gpu_type;  // empty = of all types together
  std::string reason;    // which limit of what, for people
};

struct Snapshot {
  std::string file;  // the file that it came from, or "slurm"
  std::vector<SnapshotNode> nodes;
  std::vector<BusyNode> busy;
  std::vector<WaitingJob> queue;
  std::vector<GpuLimit> limits;
  std::vector<WantedNode> wanted{};                                   // of the job that asks for the snapshot
  std::optional<int64_t> time_s{};                                    // when it was taken, since 1970
  std::map<std::string, std::map<std::string, double>> usd_per_hour;  // [gpu type][zone], one GPU
  std::map<std::string, std::map<std::string, double>> spot_usd_per_hour;  // the same
  std::optional<double> usd_per_unit_hour;  // price of a billing unit; nothing = GPUs have prices
  std::map<std::string, std::map<std::string, double>> egress_usd_per_gb;  // [from zone][to zone]
  std::vector<std::string> not_free;  // "NODE: reason" of unavailable nodes, busy ones too, for explanations

  const SnapshotNode* find(const std::string& node) const;
  // The entry of a node with GPUs of several types: they have one each, with indices of their own.
  const SnapshotNode* find(const std::string& node, const std::string& gpu_type) const;
  // Free GPUs by (zone, GPU type).
  std::map<std::pair<std::string, std::string>, int> free_by_zone_and_type() const;
  // The least of the limits on a type, or for an empty one on all together; nullptr if there is none.
  const GpuLimit* limit_on(const std::string& gpu_type) const;
};

Snapshot load_snapshot(const std::string& path);
Snapshot parse_snapshot(const std::string& yaml, const std::string& file_name);
std::string to_yaml(const Snapshot& snapshot);

}  // namespace sailor
