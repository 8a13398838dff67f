// The simulated cluster of a queue study, as submissions and running jobs see it: whole nodes in one
// partition. Not thread-safe.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "planner/scheduler/simulated_cluster.h"
#include "planner/spec/snapshot.h"
#include "tests/bench/queue/workload.h"

namespace sailor::bench {

class StudyCluster {
 public:
  // References outlive the object.
  StudyCluster(const Snapshot& nodes, const std::vector<NodeKind>& kinds, int64_t start_s);

  SimulatedCluster& scheduler() { return cluster_; }
  int64_t now_s() const { return cluster_.now_s(); }
  const SnapshotNode& node(const std::string& name) const { return nodes_.at(name); }

  std::string submit(const JobRequest& request, std::optional<int64_t> takes_s);
  std::string submit_helper(const HelperRequest& request);

  // Nodes on which a job of this length and priority could start at once.
  std::vector<std::string> idle_for(int64_t length_s, int nice = 0) const;
  Snapshot only(const std::vector<std::string>& names) const;
  // What a submission sees: these free nodes, busy ones with the limits of their jobs, the queue.
  Snapshot view(const std::vector<std::string>& idle);
  // Of the nodes that these helper jobs have, those on which other jobs would start.
  std::vector<WantedNode> wanted_of(const std::vector<std::string>& helpers);

 private:
  std::vector<std::string> names_for(const JobRequest& request) const;
  void forget_ended();

  const Snapshot& cluster_file_;
  const std::vector<NodeKind>& kinds_;
  SimulatedCluster cluster_;
  std::map<std::string, SnapshotNode> nodes_;
  std::map<int64_t, JobRequest> requests_;  // of jobs that wait or run, by the number that is their id
};

}  // namespace sailor::bench
