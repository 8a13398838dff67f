#include "spank_plugin/slurm/releases.h"

#include <fmt/format.h>
#include <slurm/slurm_version.h>

#include <csignal>

// The library's settings. Every release has them, no header declares them.
extern "C" slurm_conf_t slurm_conf __attribute__((weak));

// What a release has is asked of its headers, not concluded from its number. These functions are templates,
// so that the calls of other releases are not compiled.
namespace sailor {
namespace {

template <typename Id>
slurm_step_id_t any_step_of(Id job_id) {
  slurm_step_id_t step{};
  step.job_id = job_id;
  step.step_id = NO_VAL;
  step.step_het_comp = NO_VAL;
  return step;
}

template <typename Id>
int load(job_info_msg_t** jobs, Id job_id) {
  if constexpr (requires { slurm_load_job(jobs, job_id, SHOW_LOCAL); })
    return slurm_load_job(jobs, job_id, SHOW_LOCAL);
  else  // 26.05
    return slurm_load_job(jobs, any_step_of(job_id), SHOW_LOCAL);
}

template <typename Id>
int kill(Id job_id) {
  if constexpr (requires { slurm_kill_job(job_id, SIGKILL, 0); })
    return slurm_kill_job(job_id, SIGKILL, 0);
  else  // 26.05
    return slurm_kill_job(any_step_of(job_id), SIGKILL, 0);
}

template <typename Job>
uint32_t number(const Job& job) {
  if constexpr (requires { job.job_id; })
    return job.job_id;
  else  // 26.05
    return job.step_id.job_id;
}

template <typename Settings>
void free_of(Settings* settings) {
  if constexpr (requires { slurm_free_ctl_conf(settings); })
    slurm_free_ctl_conf(settings);
  else  // 26.05
    slurm_free_conf(settings);
}

}  // namespace

std::string ranged_string(HostList list) {
  // Up to 23.02, slurm_hostlist_ranged_string_malloc(); later ..._xmalloc(), whose memory cannot be freed
  // here.
  for (std::string text(256, '\0');; text.resize(2 * text.size())) {
    const ssize_t length = slurm_hostlist_ranged_string(list, text.size(), text.data());
    if (length >= 0) return text.substr(0, static_cast<size_t>(length));
  }
}

uint32_t job_number(const slurm_job_info_t& job) {
  return number(job);
}

uint16_t allocated_cpus(const node_info_t& node) {
#if SLURM_VERSION_NUMBER >= \
    SLURM_VERSION_NUM(25, 5, 0)  // the old call has no type that a template could ask for
  return node.alloc_cpus;
#else
  uint16_t cpus = 0;
  const int code =
      slurm_get_select_nodeinfo(node.select_nodeinfo, SELECT_NODEDATA_SUBCNT, NODE_STATE_ALLOCATED, &cpus);
  return code == SLURM_SUCCESS ? cpus : uint16_t{0};
#endif
}

uint64_t allocated_memory_mb(const node_info_t& node) {
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(25, 5, 0)
  return node.alloc_memory;
#else
  uint64_t memory = 0;
  const int code = slurm_get_select_nodeinfo(node.select_nodeinfo, SELECT_NODEDATA_MEM_ALLOC,
                                             NODE_STATE_ALLOCATED, &memory);
  return code == SLURM_SUCCESS ? memory : uint64_t{0};
#endif
}

int load_job(job_info_msg_t** jobs, uint32_t job_id) {
  return load(jobs, job_id);
}

int kill_job(uint32_t job_id) {
  return kill(job_id);
}

const slurm_conf_t* settings() {
  return &slurm_conf;
}

bool limits_are_enforced() {
  constexpr uint16_t kEnforceLimits = 0x2;
  const slurm_conf_t* conf = settings();
  return conf != nullptr && (conf->accounting_storage_enforce & kEnforceLimits) != 0;
}

std::string identity() {
  const slurm_conf_t* conf = settings();
  if (conf == nullptr || conf->cluster_name == nullptr) return "";
  const std::string name = conf->cluster_name;
  if (name.find('/') != std::string::npos) return "";
  return fmt::format("{}-{}-{:08x}", name, conf->slurmctld_port, conf->hash_val);
}

void free_settings(slurm_conf_t* settings) {
  free_of(settings);
}

}  // namespace sailor
