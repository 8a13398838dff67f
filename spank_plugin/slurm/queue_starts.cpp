#include "spank_plugin/slurm/queue_starts.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>
#include <tuple>
#include <unordered_map>

#include "planner/scheduler/backfill_map.h"
#include "planner/spec/name_list.h"
#include "planner/spec/quantity.h"
#include "spank_plugin/slurm/live_cluster.h"
#include "spank_plugin/slurm/usable_nodes.h"

namespace sailor {
namespace {

constexpr int64_t kNever = BackfillMap::kForEver;

// Would its nodes alone let the job start, and are they known?
bool waits_for_known_nodes(const SlurmWaitingJob& job) {
  return job.reason != WaitReason::other && !job.in_reservation && job.partitions.size() <= 1 &&
         (job.required.empty() || job.required.size() == static_cast<size_t>(job.nodes));
}

class Queue {
 public:
  Queue(const SlurmView& view, size_t most) : view_(view), usable_(view), map_(view.nodes.size()) {
    starts_.resize(std::min(most, view.queue.size()));
    for (size_t i = 0; i < view.nodes.size(); ++i) {
      const SlurmNode& node = view.nodes[i];
      index_[node.name] = i;
      if (const int64_t busy_s = busy_s_of(node); busy_s > 0) map_.take({i}, 0, busy_s, "");
    }
  }

  std::vector<std::optional<QueueStart>> place() {
    std::map<uint32_t, std::vector<size_t>> components;
    for (size_t i = 0; i < starts_.size(); ++i) components[view_.queue[i].job].push_back(i);
    for (size_t i = 0; i < starts_.size(); ++i) {
      const uint32_t job = view_.queue[i].job;
      if (job == 0)
        place({i});
      else if (components[job].front() == i)
        place(components[job]);
    }
    return std::move(starts_);
  }

 private:
  int64_t busy_s_of(const SlurmNode& node) const {
    if (state_obstacle(node.state)) return kNever;
    if (node.allocated_cpus == 0) return 0;
    return node.jobs_end ? std::max<int64_t>(1, *node.jobs_end - view_.now) : kNever;
  }

  std::string owner_of(const std::vector<size_t>& components) const {
    return std::to_string(view_.queue[components.front()].job);
  }

  // All components at the same time.
  void place(const std::vector<size_t>& components) {
    for (int64_t begin_s = 0;;) {
      const std::optional<int64_t> later_s = place_from(components, begin_s);
      if (later_s == begin_s) return;
      map_.release(owner_of(components));
      for (const size_t component : components) starts_[component].reset();
      if (!later_s) return;
      begin_s = *later_s;
    }
  }

  // The start of the last one; nothing if one of them has none.
  std::optional<int64_t> place_from(const std::vector<size_t>& components, int64_t begin_s) {
    const std::string owner = owner_of(components);
    int64_t last_s = begin_s;
    for (const size_t component : components) {
      const SlurmWaitingJob& job = view_.queue[component];
      int64_t from_s = begin_s;
      if (!waits_for_known_nodes(job)) {
        if (!job.start) return std::nullopt;
        from_s = std::max(from_s, *job.start - view_.now);
      }
      const int64_t limit_s = limit_of(job);
      const auto slot = map_.earliest(choices(job), static_cast<size_t>(job.nodes), from_s, limit_s);
      if (!slot) return std::nullopt;
      const int64_t kept_s = kept_from(slot->begin_s);
      map_.take(slot->nodes, slot->begin_s, std::min(slot->begin_s + limit_s, kNever), owner, kept_s);
      QueueStart& start = starts_[component].emplace();
      start.wait_s = static_cast<double>(slot->begin_s);
      start.kept_s = static_cast<double>(kept_s);
      for (const size_t node : slot->nodes) start.nodes.push_back(view_.nodes[node].name);
      last_s = std::max(last_s, slot->begin_s);
    }
    return components.size() > 1 ? last_s : begin_s;
  }

  // The last second before the interval of the backfill scheduler's map in which the job starts.
  int64_t kept_from(int64_t begin_s) const {
    const int64_t interval_s = std::max<int64_t>(1, view_.backfill_resolution_s);
    return std::max<int64_t>(0, begin_s - (view_.now + begin_s) % interval_s - 1);
  }

  int64_t limit_of(const SlurmWaitingJob& job) const {
    std::optional<double> limit_s = job.limit_s;
    for (const SlurmPartition& partition : view_.partitions)
      if (!limit_s && partition.name == job.partition) limit_s = default_limit_s(partition);
    return limit_s ? static_cast<int64_t>(std::ceil(*limit_s)) : kNever;
  }

  // Nodes that the job may have. Queues have many jobs that ask for the same.
  const std::vector<size_t>& choices(const SlurmWaitingJob& job) {
    const std::vector<std::string>& names = waits_for_known_nodes(job) ? job.required : job.names;
    const auto [known, is_new] =
        choices_.try_emplace({job.partition, job.features, job.excluded, job.needs.gpus, names});
    if (!is_new) return known->second;
    for (const std::string& name : names.empty() ? usable_.names(job) : names)
      if (const auto found = index_.find(name); found != index_.end()) known->second.push_back(found->second);
    return known->second;
  }

  using Request = std::tuple<std::string, std::string, std::vector<std::string>, std::map<std::string, int>,
                             std::vector<std::string>>;

  const SlurmView& view_;
  const UsableNodes usable_;
  std::unordered_map<std::string, size_t> index_;
  std::map<Request, std::vector<size_t>> choices_;
  BackfillMap map_;
  std::vector<std::optional<QueueStart>> starts_;
};

}  // namespace

std::vector<std::optional<QueueStart>> queue_starts(const SlurmView& view, size_t most) {
  return Queue(view, most).place();
}

int64_t backfill_resolution_s(const std::string& scheduler_parameters) {
  constexpr std::string_view kName = "bf_resolution=";
  constexpr int64_t kDefault_s = 60;
  for (const std::string& parameter : split_commas(scheduler_parameters)) {
    if (!parameter.starts_with(kName)) continue;
    const std::optional<double> value = parse_number(parameter.substr(kName.size()));
    if (value && *value >= 1) return static_cast<int64_t>(*value);
  }
  return kDefault_s;
}

std::optional<double> default_limit_s(const SlurmPartition& partition) {
  return partition.default_time_s ? partition.default_time_s : partition.max_time_s;
}

}  // namespace sailor
