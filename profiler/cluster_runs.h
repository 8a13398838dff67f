// Measuring a Slurm cluster from a node where users log in: the same program runs on one free node of every
// GPU type at the same time, each as a job of its own, and writes into a directory that the nodes share.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "planner/scheduler/scheduler.h"
#include "planner/spec/catalog.h"
#include "planner/spec/snapshot.h"

namespace sailor {

struct ClusterRun {
  std::string gpu_type;  // of the catalog; what is measured is called so
  std::string node;
  std::string partition;
};

// The first wholly free node of every GPU type, by type; for an emulated type, of the type whose profile it
// takes, measured once on any node. `notes` gets the types that have no free node.
std::vector<ClusterRun> one_node_of_each_type(const Snapshot& snapshot, const Catalog& catalog,
                                              std::vector<std::string>& notes);

// Runs `command` + {"--gpu-type", TYPE} on the node of every run, all at once, as jobs of `scheduler`. `line`
// gets what they print, line by line, after "NODE: ". Returns the number of runs that failed; when this
// process is interrupted, so are they. Throws std::runtime_error.
int run_on_cluster(Scheduler& scheduler, const std::vector<ClusterRun>& runs,
                   const std::vector<std::string>& command,
                   const std::function<void(const std::string&)>& line);

}  // namespace sailor
