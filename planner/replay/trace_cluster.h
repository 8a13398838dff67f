// The cluster that an availability trace describes, node by node: which ones go when there are fewer is drawn
// at random, those that come are new ones. Deterministic for a seed. Not thread-safe.
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

// A GPU that was there: its node and its index on the node.
using LostGpus = std::set<std::pair<std::string, int>>;

class TraceCluster {
 public:
  // Of pools that `base` says the prices of; its nodes do not count.
  TraceCluster(std::vector<ReplayPool> pools, Snapshot base, uint64_t seed);

  // From now on there are so many GPUs, by pool. Returns those that have gone.
  LostGpus change_to(const std::vector<int>& gpus);

  // All GPUs that are there are free.
  const Snapshot& snapshot() const { return snapshot_; }
  // Equal for clusters that differ in the names of nodes only.
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
