#include "spank_plugin/slurm/submitted_job.h"

#include <fmt/format.h>
#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>

#include <cerrno>
#include <memory>
#include <stdexcept>
#include <utility>

#include "spank_plugin/slurm/releases.h"
#include "spank_plugin/slurm/slurm_view.h"

namespace sailor {
namespace {

using JobComponents = std::unique_ptr<job_info_msg_t, decltype(&slurm_free_job_info_msg)>;

// All components of a job; null if it is unknown.
JobComponents components_of(uint32_t job_id) {
  job_info_msg_t* raw = nullptr;
  if (load_job(&raw, job_id) == SLURM_SUCCESS) return {raw, slurm_free_job_info_msg};
  if (errno == ESLURM_INVALID_JOB_ID) return {nullptr, slurm_free_job_info_msg};
  throw std::runtime_error(
      fmt::format("cannot read job {} from slurmctld: {}", job_id, slurm_strerror(errno)));
}

}  // namespace

bool is_pending(uint32_t job_id) {
  const JobComponents jobs = components_of(job_id);
  for (uint32_t i = 0; jobs && i < jobs->record_count; ++i) {
    if ((jobs->job_array[i].job_state & JOB_STATE_BASE) == JOB_PENDING) return true;
  }
  return false;
}

std::set<std::string> nodes_held_by(uint32_t job_id) {
  std::set<std::string> names;
  const JobComponents jobs = components_of(job_id);
  for (uint32_t i = 0; jobs && i < jobs->record_count; ++i) {
    if (const char* nodes = jobs->job_array[i].nodes)
      for (std::string& name : expand_hosts(nodes)) names.insert(std::move(name));
  }
  return names;
}

void withdraw_job(uint32_t job_id) {
  if (kill_job(job_id) != SLURM_SUCCESS && errno != ESLURM_ALREADY_DONE)
    throw std::runtime_error(fmt::format("cannot cancel job {}: {}", job_id, slurm_strerror(errno)));
}

}  // namespace sailor
