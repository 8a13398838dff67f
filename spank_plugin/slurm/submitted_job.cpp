#include "spank_plugin/slurm/submitted_job.h"

#include <fmt/format.h>
#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>

#include <cerrno>
#include <memory>
#include <sstream>
#include <stdexcept>

#include "planner/process/subprocess.h"
#include "spank_plugin/slurm/releases.h"

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

std::map<std::string, JobShare> held_by(uint32_t job_id) {
  if (!components_of(job_id)) return {};
  std::istringstream lines(
      run_and_read({"timeout", "10", "scontrol", "show", "job", "-d", "-o", std::to_string(job_id)}));
  std::map<std::string, JobShare> shares;
  for (std::string line; std::getline(lines, line);) shares.merge(shares_in_scontrol(line));
  return shares;
}

void forget_requested_nodes(uint32_t job_id) {
  std::string id = std::to_string(job_id), none;
  job_desc_msg_t update;
  slurm_init_job_desc_msg(&update);
  update.job_id_str = id.data();  // of all components, which `scontrol update` would refuse
  update.req_nodes = none.data();
  // The answer is not freed: older headers declare no function for it, and this process ends soon.
  job_array_resp_msg_t* answer = nullptr;
  int error = slurm_update_job2(&update, &answer) == SLURM_SUCCESS ? SLURM_SUCCESS : errno;
  for (uint32_t i = 0; answer != nullptr && i < answer->job_array_count; ++i)
    if (answer->error_code[i] != SLURM_SUCCESS) error = static_cast<int>(answer->error_code[i]);
  if (error != SLURM_SUCCESS && is_pending(job_id)) {
    throw std::runtime_error(
        fmt::format("cannot change the nodes of job {}: {}", job_id, slurm_strerror(error)));
  }
}

void withdraw_job(uint32_t job_id) {
  if (kill_job(job_id) != SLURM_SUCCESS && errno != ESLURM_ALREADY_DONE)
    throw std::runtime_error(fmt::format("cannot cancel job {}: {}", job_id, slurm_strerror(errno)));
}

}  // namespace sailor
