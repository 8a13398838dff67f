// Measures a Slurm cluster from a login node: the same program runs on one free node of every GPU type
// concurrently, each as its own job, and writes to a directory that the nodes share.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "planner/scheduler/scheduler.h"
#include "planner/spec/catalog.h"
#include "planner/spec/snapshot.h"

namespace sailor {

struct NodeJob {
  std::string gpu_type;  // of the catalog; name of the measured type
  std::string node;
  std::string partition;
  int gpus = 0;  // of the node; 0: its GPUs are emulated by processors
};

// The first completely free node of every GPU type, by type; for an emulated type, of the type whose profile
// it uses, measured once on any node. `notes` gets the types without a free node.
std::vector<NodeJob> one_node_of_each_type(const Snapshot& snapshot, const Catalog& catalog,
                                           std::vector<std::string>& notes);

// Runs `command` + {"--gpu-type", TYPE} on the node of each of `jobs`, concurrently, as jobs of `scheduler`.
// `line` gets their output line by line, after "NODE: ". Returns the number of failed jobs. When this process
// is interrupted, the jobs are cancelled. Throws std::runtime_error.
int run_node_jobs(Scheduler& scheduler, const std::vector<NodeJob>& jobs,
                  const std::vector<std::string>& command,
                  const std::function<void(const std::string&)>& line);

}  // namespace sailor
