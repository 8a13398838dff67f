// The nodes of a placed plan as a cluster: the nodes of the job only. Pure.
#pragma once

#include "planner/plan/plan.h"
#include "planner/spec/site_config.h"
#include "planner/spec/snapshot.h"

namespace sailor {

// Every GPU of the plan is free. Nodes have no partition, and their region is their zone. Throws InputError
// if two stages share a GPU, or a node has two zones.
Snapshot nodes_of_plan(const Plan& plan);

// Sets the region of each node to the region of its zone in the site config.
void set_regions(Snapshot& snapshot, const SiteConfig& site);

}  // namespace sailor
