// The nodes of a placed plan: as a cluster, and what their loss would take. Pure.
#pragma once

#include <functional>
#include <set>
#include <string>

#include "planner/plan/plan.h"
#include "planner/spec/site_config.h"
#include "planner/spec/snapshot.h"

namespace sailor {

// The nodes of the job only. Every GPU of the plan is free. Nodes have no partition, and their region is
// their zone. Throws InputError if two stages share a GPU, or a node has two zones.
Snapshot nodes_of_plan(const Plan& plan);

// Sets the region of each node to the region of its zone in the site config.
void set_regions(Snapshot& snapshot, const SiteConfig& site);

// Calls visit(stage, layer, copy, share) for each copy of a layer's parameters, with the first stage of its
// group of GPUs: which share of its training state the ranks of that copy have, if ZeRO divides the state
// among those that share it; otherwise 0, all of it.
using ShareVisitor = std::function<void(const PlanStage& stage, int layer, int copy, int share)>;
void for_each_share(const Plan& plan, const ShareVisitor& visit);

// Nodes with a part of the training state that no other node of the plan has: a layer that only one node
// holds, or, where replicas share the optimizer's states, a share of them. Empty if the plan is not placed.
std::set<std::string> only_holders(const Plan& plan);

}  // namespace sailor
