#include "spank_plugin/slurm/expected_start.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <slurm/slurm.h>
#include <unistd.h>

#include <cmath>
#include <set>

namespace sailor {
namespace {

char* or_null(std::string& text) {
  return text.empty() ? nullptr : text.data();
}

}  // namespace

std::optional<int64_t> expected_start(const SlurmPartition& partition, const std::vector<std::string>& among,
                                      size_t count, const PartitionWishes& wishes) {
  std::string name = "sailor", script = "#!/bin/sh\n", directory = "/", where = partition.name;
  // Slurm reads a list of required nodes as all of them.
  const bool all = among.size() == count;
  std::vector<std::string> listed = among;
  if (!all) {
    listed = partition.nodes;
    const std::set<std::string> allowed(among.begin(), among.end());
    std::erase_if(listed, [&](const std::string& node) { return allowed.contains(node); });
  }
  std::string list = listed.empty() ? "" : compress_hosts(listed);
  std::string account = wishes.account, qos = wishes.qos, reservation = wishes.reservation;
  std::string path = "PATH=/bin";  // a batch job without environment is refused
  char* environment[] = {path.data(), nullptr};
  job_desc_msg_t job;
  slurm_init_job_desc_msg(&job);
  job.name = name.data();
  job.script = script.data();
  job.work_dir = directory.data();
  job.environment = environment;
  job.env_size = 1;
  job.user_id = getuid();
  job.group_id = getgid();
  job.partition = where.data();
  (all ? job.req_nodes : job.exc_nodes) = or_null(list);
  job.min_nodes = job.max_nodes = static_cast<uint32_t>(count);
  job.num_tasks = job.min_nodes;
  job.shared = 0;  // whole nodes
  job.account = or_null(account);
  job.qos = or_null(qos);
  job.reservation = or_null(reservation);
  if (wishes.time_limit_s) job.time_limit = static_cast<uint32_t>(std::ceil(*wishes.time_limit_s / 60));
  // The answer is not freed: Slurm's headers declare no function for it, and this process ends soon.
  will_run_response_msg_t* answer = nullptr;
  if (slurm_job_will_run2(&job, &answer) != SLURM_SUCCESS || answer == nullptr) return std::nullopt;
  return answer->start_time > 0 ? std::optional<int64_t>(answer->start_time) : std::nullopt;
}

}  // namespace sailor
