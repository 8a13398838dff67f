#include "spank_plugin/slurm/waiting_jobs.h"

#include <algorithm>

#include "planner/spec/name_list.h"
#include "spank_plugin/slurm/queue_starts.h"

namespace sailor {

std::vector<WaitingJob> waiting_jobs(const SlurmView& view) {
  constexpr size_t kMost = 200;
  const std::vector<std::optional<QueueStart>> starts = queue_starts(view, kMost);
  std::vector<WaitingJob> jobs;
  for (size_t i = 0; i < starts.size(); ++i) {
    const SlurmWaitingJob& from = view.queue[i];
    const auto partition =
        std::find_if(view.partitions.begin(), view.partitions.end(),
                     [&](const SlurmPartition& other) { return other.name == from.partition; });
    if (partition == view.partitions.end()) continue;
    WaitingJob job{.nodes = from.nodes, .names = from.names, .partition = from.partition};
    if (starts[i]) {
      job.names = starts[i]->nodes;
      job.start_in_s = starts[i]->wait_s;
      job.kept_in_s = starts[i]->kept_s;
    } else if (from.start) {
      job.start_in_s = static_cast<double>(std::max<int64_t>(0, *from.start - view.now));
    }
    job.is_new = from.reason == WaitReason::none_yet;
    job.limit_s = from.limit_s ? from.limit_s : default_limit_s(*partition);
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
    if (const auto own = default_limit_s(partition)) length_s = std::min(length_s.value_or(*own), *own);
  }
  return length_s;
}

}  // namespace sailor
