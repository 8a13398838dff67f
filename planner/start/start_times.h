// When the nodes of a cluster come free for a new job, by the time limits of the jobs that run and wait, as a
// scheduler with backfill plans it. An estimate: jobs end before their limits, and others are submitted.
// Pure.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "planner/scheduler/backfill_map.h"
#include "planner/spec/snapshot.h"

namespace sailor {

// The first of these times, ascending, a minute or more apart and at most `most`: times within a minute count
// as the last of them.
std::vector<double> first_times(std::vector<double> times_s, size_t most);

class StartTimes {
 public:
  // For a job of this length; nothing = without a time limit. The snapshot must outlive the object.
  StartTimes(const Snapshot& snapshot, std::optional<double> length_s);

  // The free nodes, then the busy ones; other functions name nodes by their index here.
  const std::vector<const SnapshotNode*>& nodes() const { return nodes_; }
  // The same nodes as groups that are alike: one partition, zone, GPU type and number of GPUs.
  const std::vector<std::vector<size_t>>& kinds() const { return kinds_; }

  struct Slot {
    double wait_s = 0;
    std::vector<size_t> nodes;
  };
  // Does another job use the node now that a waiting job could take?
  bool contested(size_t node) const { return contested_[node]; }

  // The earliest start on `count` of the nodes; nothing if it is unknown. Requires count >= 1. `length_s`: of
  // a job that is shorter than the others.
  std::optional<Slot> earliest(const std::vector<size_t>& among, size_t count,
                               std::optional<double> length_s = {}) const;
  // On all nodes of these names. Requires at least one.
  std::optional<double> wait_for(const std::vector<std::string>& names,
                                 std::optional<double> length_s = {}) const;
  // On as many nodes of the same kinds.
  std::optional<double> wait_for_alike(const std::vector<std::string>& names,
                                       std::optional<double> length_s = {}) const;
  // The nodes that a job could have which starts after `wait_s`.
  std::vector<size_t> free_at(double wait_s) const;
  // Times at which the first nodes come free, ascending: at most `most`, a minute or more apart.
  std::vector<double> next_times(size_t most) const;

 private:
  void take_busy(const Snapshot& snapshot);
  void take_queue(const Snapshot& snapshot);
  std::vector<size_t> indices_of(const std::vector<std::string>& names) const;
  std::vector<size_t> nodes_for(const WaitingJob& job) const;
  int64_t length_of(std::optional<double> shorter_s) const;

  std::vector<const SnapshotNode*> nodes_;
  std::unordered_map<std::string, std::vector<size_t>> by_name_;  // several: GPUs of several types
  std::vector<std::vector<size_t>> kinds_;
  std::vector<bool> contested_;
  BackfillMap map_;
  int64_t length_s_;
};

}  // namespace sailor
