// Nodes of a job's helper jobs on which jobs of others would start, if they were returned. Pure.
#pragma once

#include <vector>

#include "planner/spec/snapshot.h"
#include "spank_plugin/slurm/slurm_view.h"

namespace sailor {

// Of `view.helper_shares`. Jobs that wait are taken in the order of their priority. One is counted if Slurm
// says that it waits for nodes, it is not a helper job itself, and the nodes that it lacks are among these; a
// job that would still have to wait keeps all nodes that it could use from those behind it. At most as many
// nodes as the jobs need. Reservations, switches and licenses are not considered.
std::vector<WantedNode> wanted_nodes(const SlurmView& view);

}  // namespace sailor
