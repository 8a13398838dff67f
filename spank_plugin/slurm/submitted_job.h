// A single job, as seen by the controller: one that was just submitted, or one that ends. Needs an
// initialised libslurm in the process.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "spank_plugin/slurm/commands/job_share.h"

namespace sailor {

// Is the job (one of its components) pending? False if it runs, has ended, or is unknown. Throws
// std::runtime_error when the controller does not answer.
bool is_pending(uint32_t job_id);

// What the job holds of each node, with all its components; nothing if it is unknown. Throws
// std::runtime_error.
std::map<std::string, JobShare> held_by(uint32_t job_id);

// Lets a pending job start on any nodes that its request fits, all components. Does nothing if it is no
// longer pending. Throws std::runtime_error.
void forget_requested_nodes(uint32_t job_id);

// Cancels it, all components. Throws std::runtime_error.
void withdraw_job(uint32_t job_id);

}  // namespace sailor
