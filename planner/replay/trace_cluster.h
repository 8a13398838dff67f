// The cluster of an availability trace, by node. Lost nodes are chosen at random; added nodes are new ones.
// Deterministic for a seed. Not thread-safe.
#pragma once

#include <cstdint>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "planner/replay/availability_trace.h"
#include "planner/spec/snapshot.h"

namespace sailor {

struct ReplayPool {
  std::string gpu_type;
  std::string zone;
  std::string region;
  int gpus_per_node = 1;
};

// GPUs that were lost: node, and index on the node.
using LostGpus = std::set<std::pair<std::string, int>>;

class TraceCluster {
 public:
  // `base` has the prices of the pools; its nodes are ignored.
  TraceCluster(std::vector<ReplayPool> pools, Snapshot base, uint64_t seed);

  // Changes the number of GPUs, by pool. Returns the lost GPUs.
  LostGpus change_to(const std::vector<int>& gpus);

  // All GPUs of the cluster, which are all free.
  const Snapshot& snapshot() const { return snapshot_; }
  // Equal for clusters that differ only in node names.
  std::string shape() const;

 private:
  void add(const ReplayPool& pool, int gpus);
  void remove(const ReplayPool& pool, int gpus, LostGpus& lost);

  std::vector<ReplayPool> pools_;
  Snapshot snapshot_;
  std::mt19937_64 random_;
  int64_t nodes_made_ = 0;
};

}  // namespace sailor
