// A job that was just submitted, as seen by the controller. Needs an initialised libslurm in the process.
#pragma once

#include <cstdint>

namespace sailor {

// Is the job (one of its components) pending? False if it runs, has ended, or is unknown. Throws
// std::runtime_error when the controller does not answer.
bool is_pending(uint32_t job_id);

// Cancels it, all components. Throws std::runtime_error.
void withdraw_job(uint32_t job_id);

}  // namespace sailor
