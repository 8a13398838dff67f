// From a placed plan to a request to Slurm: the components of the job and their options.
//
// One component (an ordinary job) if a single partition holds all nodes of the plan; the site's umbrella
// partition is only used if no other one does. Else one component per partition (a heterogeneous job), in the
// order of their first node's name: Slurm's own launcher needs the concatenated node lists of a heterogeneous
// job to be sorted if possible. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "planner/plan/plan.h"
#include "spank_plugin/slurm/live_cluster.h"

namespace sailor {

struct Component {
  std::string partition;
  std::vector<std::string> nodes;     // in Slurm's order
  int tasks = 0;                      // ranks of the plan on these nodes
  std::vector<int> tasks_by_node;     // parallel to nodes
  std::optional<int> tasks_per_node;  // if it is the same on every node
  std::string gres;                   // request per node; empty if the nodes differ
};

// Requires a plan whose stages are all placed on nodes of the cluster (throws std::runtime_error naming the
// node that is not).
std::vector<Component> allocate(const Plan& plan, const LiveCluster& cluster);

// The options of one component, the same for sbatch, salloc and srun: exactly the named nodes, exclusively.
std::vector<std::string> submit_options(const Component& component);
// srun starts the tasks itself, and distributes them evenly unless it gets a number per node.
std::vector<std::string> submit_options_with_tasks(const Component& component);

// Compares names in Slurm's order: digits by value, so that n2 comes before n10.
bool host_less(const std::string& a, const std::string& b);

}  // namespace sailor
