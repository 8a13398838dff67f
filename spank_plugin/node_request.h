// Names of nodes in the request of a planned job. They are a wish: a job asks for its planned nodes by name
// when it can start on them at once, else for its shape (slurm/job_shape.h), and Slurm chooses. Pure.
#pragma once

#include <string>

#include "planner/inputs/submit_options.h"
#include "spank_plugin/planning.h"

namespace sailor {

// Whether Slurm may choose other nodes than the planned ones. `has_nodelist`: the user has named nodes.
bool may_move(const SubmitOptions& options, bool has_nodelist, const PlannedJob& planned);

// Completes the components of a job that may move; those of a job that starts later lose their names.
void request_shape(PlannedJob& planned, bool starts_later);

// All of its nodes, as a host list.
std::string nodes_text(const PlannedJob& planned);
// A line for the user about the nodes of a job that waits; empty if its nodes are the user's choice.
std::string waiting_nodes_text(const SubmitOptions& options, const PlannedJob& planned, bool moves);

}  // namespace sailor
