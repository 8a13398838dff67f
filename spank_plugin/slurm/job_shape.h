// The shape of a planned job: what its request says of nodes without their names, so that Slurm may choose
// other nodes that are equal. Pure.
//
// Nodes are equal if they have the same GPUs (types and numbers) and are in the same zone. A request is a
// shape if every node of its partition that it fits is equal to the planned ones:
//
//   - by partition and GPUs: a partition of one kind of node, or GRES types;
//   - else by a feature that the planned nodes have and no other kind of node: --constraint=FEATURE;
//   - nodes of several kinds in one component (umbrella partition): by a feature for each kind,
//     --constraint=[A*2&B*4].
#pragma once

#include <string>
#include <vector>

#include "planner/plan/node_groups.h"
#include "spank_plugin/slurm/allocation.h"
#include "spank_plugin/slurm/live_cluster.h"

namespace sailor {

struct JobShape {
  std::vector<NodeGroup> groups;         // of all components
  std::vector<std::string> constraints;  // by component; empty = none is needed
  std::string why_not;                   // why the job has no shape, in one clause; empty = it has
};

// `has_constraint`: the user has given one, which stays as it is.
JobShape shape_of(const std::vector<Component>& components, const LiveCluster& cluster, bool has_constraint);

}  // namespace sailor
