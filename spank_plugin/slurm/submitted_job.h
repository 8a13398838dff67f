// A job that was just submitted, as the controller sees it. Needs an initialised libslurm in the process.
#pragma once

#include <cstdint>

namespace sailor {

// Does the job wait in the queue (one of its components)? Not when it runs, has ended, or is not known.
// Throws std::runtime_error when the controller does not answer.
bool is_pending(uint32_t job_id);

// Cancels it, all components. Throws std::runtime_error.
void withdraw_job(uint32_t job_id);

}  // namespace sailor
