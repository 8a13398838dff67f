// From a placed plan to what Slurm is asked for: the components of the job and their options.
//
// One component (an ordinary job) when a single partition holds all nodes of the plan; the site's umbrella
// partition is used for that when no other does. Else one component per partition (a heterogeneous job), in
// the order of their first node's name: Slurm's own launcher needs the concatenated node lists of a
// heterogeneous job to be sorted where that is possible. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "planner/plan/plan.h"
#include "spank_plugin/slurm/live_cluster.h"

namespace sailor {

struct Component {
  std::string partition;
  std::vector<std::string> nodes;     // sorted as Slurm sorts them
  int tasks = 0;                      // ranks of the plan on these nodes
  std::vector<int> tasks_by_node;     // parallel to nodes
  std::optional<int> tasks_per_node;  // when it is the same on every node
  std::string gres;                   // request per node; empty when the nodes differ
};

// Requires a plan whose stages are all placed on nodes of the cluster (throws std::runtime_error naming the
// node that is not).
std::vector<Component> allocate(const Plan& plan, const LiveCluster& cluster);

// The options of one component, the same for sbatch, salloc and srun. Nodes are taken whole and are exactly
// the named ones.
std::vector<std::string> submit_options(const Component& component);
// srun starts the tasks itself, and deals them out evenly unless it is told node by node.
std::vector<std::string> submit_options_with_tasks(const Component& component);

// Names compared as Slurm sorts them: runs of digits by value, so that n2 comes before n10.
bool host_less(const std::string& a, const std::string& b);

}  // namespace sailor
