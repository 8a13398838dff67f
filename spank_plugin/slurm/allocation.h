// From a placed plan to a request to Slurm: the components of the job and their options.
//
// One component (an ordinary job) if a single partition holds all nodes of the plan; the site's umbrella
// partition is only used if no other one does. Else one component per partition (a heterogeneous job), in the
// order of their first node's name: Slurm's own launcher needs the concatenated node lists of a heterogeneous
// job to be sorted if possible. Pure.
//
// A component asks for what its ranks need, one GPU each. If its nodes have equally many ranks, the request
// is per node, else per rank. Nodes with GPUs of several types need requests by type, which Slurm has per
// node only, and nodes with little memory need other requests than the rest: there each kind of node is a
// component. Where jobs take whole nodes, the component has all of their GPUs, processors and memory.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "planner/plan/plan.h"
#include "spank_plugin/slurm/live_cluster.h"

namespace sailor {

struct Component {
  std::string partition;
  std::vector<std::string> nodes;     // in Slurm's order
  bool by_name = true;                // the request has these names; else any nodes that fit it
  std::string constraint;             // --constraint; empty = the user's, or none (job_shape.h)
  int tasks = 0;                      // ranks of the plan on these nodes
  std::vector<int> tasks_by_node;     // parallel to nodes
  std::optional<int> tasks_per_node;  // if it is the same on every node
  bool whole_nodes = false;
  std::string gres;              // request per node; empty if the nodes differ
  bool per_rank = false;         // requests are for a rank, not for a node
  int cpus_per_task = 0;         // 0: the user's, or Slurm's default
  int64_t memory_mb = 0;         // of a node, or of a rank with per_rank; 0: the same
  bool memory_per_cpu = false;   // how it is asked for; the same in all components of a job
  bool memory_is_given = false;  // by the user
  std::vector<NodeNeeds> needs;  // parallel to nodes
};

// What a plan does not say of its ranks.
struct RankRequest {
  std::optional<int> cpus{};                      // of a rank, by the user or the site
  bool cpus_are_given = false;                    // by the user: in the command line already
  bool memory_is_given = false;                   // the same
  std::map<std::string, int64_t> memory_bytes{};  // of a rank, by GPU type; absent = Slurm's default
};

// Requires a plan whose stages are all placed on nodes of the cluster (throws std::runtime_error naming the
// node that is not).
std::vector<Component> allocate(const Plan& plan, const LiveCluster& cluster,
                                const RankRequest& request = {});

// The options of one component for sbatch: exactly the named nodes, or as many of their shape.
std::vector<std::string> submit_options(const Component& component);
// For salloc, which knows no requests per rank: as much of every node as of the one with most ranks.
std::vector<std::string> submit_options_evenly(const Component& component);
// For srun, which starts the tasks itself, and distributes them evenly unless it gets a number per node; else
// as for salloc.
std::vector<std::string> submit_options_with_tasks(const Component& component);

// Compares names in Slurm's order: digits by value, so that n2 comes before n10.
bool host_less(const std::string& a, const std::string& b);

}  // namespace sailor
