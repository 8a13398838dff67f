#include "spank_plugin/slurm/waiting_jobs.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "planner/spec/name_list.h"
#include "spank_plugin/slurm/usable_nodes.h"

namespace sailor {
namespace {

std::optional<double> own_limit_s(const SlurmPartition& partition) {
  return partition.default_time_s ? partition.default_time_s : partition.max_time_s;
}

// Would its nodes alone let the job start, and are they known?
bool waits_for_known_nodes(const SlurmWaitingJob& job) {
  return job.reason != WaitReason::other && !job.in_reservation && job.partitions.size() <= 1 &&
         (job.required.empty() || job.required.size() == static_cast<size_t>(job.nodes));
}

// Among which nodes jobs choose. Queues have many jobs that ask for the same.
class NodeChoicesOfJobs {
 public:
  explicit NodeChoicesOfJobs(const SlurmView& view) : usable_(view) {}

  // Empty = all nodes of the partition.
  std::vector<std::string> of(const SlurmWaitingJob& job) {
    if (!job.required.empty()) return job.required;
    if (job.features.empty() && job.excluded.empty() && job.needs.gpus.empty()) return {};
    const auto [known, is_new] =
        names_.try_emplace({job.partition, job.features, job.excluded, job.needs.gpus});
    if (is_new) known->second = usable_.names(job);
    return known->second;
  }

 private:
  using Request = std::tuple<std::string, std::string, std::vector<std::string>, std::map<std::string, int>>;

  const UsableNodes usable_;
  std::map<Request, std::vector<std::string>> names_;
};

}  // namespace

std::vector<WaitingJob> waiting_jobs(const SlurmView& view) {
  constexpr size_t kMost = 200;
  NodeChoicesOfJobs choices(view);
  std::vector<WaitingJob> jobs;
  for (const SlurmWaitingJob& from : view.queue) {
    if (jobs.size() == kMost) break;
    const auto partition =
        std::find_if(view.partitions.begin(), view.partitions.end(),
                     [&](const SlurmPartition& other) { return other.name == from.partition; });
    if (partition == view.partitions.end()) continue;
    WaitingJob job{.nodes = from.nodes, .names = from.names, .partition = from.partition};
    if (waits_for_known_nodes(from)) {
      job.names = choices.of(from);  // Slurm's expected start may be minutes late
    } else if (from.start) {
      job.start_in_s = static_cast<double>(std::max<int64_t>(0, *from.start - view.now));
    }
    job.is_new = from.reason == WaitReason::none_yet;
    job.limit_s = from.limit_s ? from.limit_s : own_limit_s(*partition);
    // Nodes can be in several partitions, of which snapshots have one.
    if (job.names.empty() && job.nodes < static_cast<int>(partition->nodes.size()))
      job.names = partition->nodes;
    jobs.push_back(std::move(job));
  }
  return jobs;
}

std::optional<double> job_length_s(const SlurmView& view, const PartitionWishes& wishes) {
  if (wishes.time_limit_s) return wishes.time_limit_s;
  std::optional<double> length_s;
  for (const SlurmPartition& partition : view.partitions) {
    if (!wishes.partitions.empty() && !contains(wishes.partitions, partition.name)) continue;
    if (const auto own = own_limit_s(partition)) length_s = std::min(length_s.value_or(*own), *own);
  }
  return length_s;
}

}  // namespace sailor
