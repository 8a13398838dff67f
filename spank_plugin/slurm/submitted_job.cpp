#include "spank_plugin/slurm/submitted_job.h"

#include <fmt/format.h>
#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>

#include <cerrno>
#include <memory>
#include <stdexcept>

#include "spank_plugin/slurm/releases.h"

namespace sailor {

bool is_pending(uint32_t job_id) {
  job_info_msg_t* raw = nullptr;
  if (load_job(&raw, job_id) != SLURM_SUCCESS) {
    if (errno == ESLURM_INVALID_JOB_ID) return false;
    throw std::runtime_error(
        fmt::format("cannot read job {} from slurmctld: {}", job_id, slurm_strerror(errno)));
  }
  const std::unique_ptr<job_info_msg_t, decltype(&slurm_free_job_info_msg)> jobs(raw,
                                                                                 slurm_free_job_info_msg);
  for (uint32_t i = 0; i < jobs->record_count; ++i) {
    if ((jobs->job_array[i].job_state & JOB_STATE_BASE) == JOB_PENDING) return true;
  }
  return false;
}

void withdraw_job(uint32_t job_id) {
  if (kill_job(job_id) != SLURM_SUCCESS && errno != ESLURM_ALREADY_DONE)
    throw std::runtime_error(fmt::format("cannot cancel job {}: {}", job_id, slurm_strerror(errno)));
}

}  // namespace sailor
