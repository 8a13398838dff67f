// The nodes of a cluster on which a plan may run instead of those it names. The scheduler chooses the nodes
// of a job by their kind, and the plan is then placed on the ones that the job got. Pure.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "planner/plan/plan.h"
#include "planner/spec/snapshot.h"

namespace sailor {

// Nodes of a plan that are of one kind.
struct NodeGroup {
  std::vector<std::string> planned;
  std::vector<std::string> equal;  // all nodes of this kind that the job may get, the planned ones included
};

std::string to_json(const std::vector<NodeGroup>& groups);
std::vector<NodeGroup> parse_node_groups(const std::string& json,
                                         const std::string& source);  // throws InputError

// Nodes by their name in the plan -> name of the node that the job has instead.
using NodeMoves = std::map<std::string, std::string>;

// For the planned nodes that are not among the job's nodes: other nodes of the job that are of their kind, in
// the order of `nodes`. A planned node without one is left out.
NodeMoves moves_to(const std::vector<std::string>& nodes, const std::vector<NodeGroup>& groups);

Plan moved(Plan plan, const NodeMoves& moves);
// Each pair of nodes exchanges its names.
Snapshot moved(Snapshot snapshot, const NodeMoves& moves);

// The nodes of a group that the job has, as the plan uses those of the group: `of_plan` are the plan's own
// nodes (plan_nodes.h).
Snapshot like_planned(const Snapshot& of_plan, const std::vector<NodeGroup>& groups,
                      const std::vector<std::string>& nodes);

}  // namespace sailor
