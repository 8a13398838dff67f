// A single job, as seen by the controller: one that was just submitted, or one that ends. Needs an
// initialised libslurm in the process.
#pragma once

#include <cstdint>
#include <set>
#include <string>

namespace sailor {

// Is the job (one of its components) pending? False if it runs, has ended, or is unknown. Throws
// std::runtime_error when the controller does not answer.
bool is_pending(uint32_t job_id);

// The nodes that the job holds, of all its components; none if it is unknown. Throws std::runtime_error.
std::set<std::string> nodes_held_by(uint32_t job_id);

// Cancels it, all components. Throws std::runtime_error.
void withdraw_job(uint32_t job_id);

}  // namespace sailor
