// The nodes of a placed plan as a cluster of their own: what a job has, whatever else there is. Pure.
#pragma once

#include "planner/plan/plan.h"
#include "planner/spec/site_config.h"
#include "planner/spec/snapshot.h"

namespace sailor {

// Every GPU of the plan is free. Nodes have no partition, and their region is their zone. Throws InputError
// when two stages share a GPU, or give a node two GPU types or zones.
Snapshot nodes_of_plan(const Plan& plan);

// Gives each node the region that the site has its zone in.
void set_regions(Snapshot& snapshot, const SiteConfig& site);

}  // namespace sailor
