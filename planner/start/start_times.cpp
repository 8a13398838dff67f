#include "planner/start/start_times.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>
#include <utility>

namespace sailor {
namespace {

int64_t whole_seconds(std::optional<double> seconds) {
  if (!seconds || *seconds >= static_cast<double>(BackfillMap::kForEver)) return BackfillMap::kForEver;
  return static_cast<int64_t>(std::ceil(*seconds));
}

}  // namespace

std::vector<double> first_times(std::vector<double> times_s, size_t most) {
  constexpr double kSameTime_s = 60;
  std::sort(times_s.begin(), times_s.end());
  std::vector<double> first;
  double group_begin = 0;
  for (const double time : times_s) {
    if (!first.empty() && time - group_begin <= kSameTime_s) {
      first.back() = time;
      continue;
    }
    if (first.size() == most) break;
    group_begin = time;
    first.push_back(time);
  }
  return first;
}

StartTimes::StartTimes(const Snapshot& snapshot, std::optional<double> length_s)
    : map_(snapshot.nodes.size() + snapshot.busy.size()), length_s_(whole_seconds(length_s)) {
  for (const SnapshotNode& node : snapshot.nodes) nodes_.push_back(&node);
  for (const BusyNode& busy : snapshot.busy) nodes_.push_back(&busy.node);
  std::map<std::tuple<std::string, std::string, std::string, size_t>, std::vector<size_t>> kinds;
  for (size_t i = 0; i < nodes_.size(); ++i) {
    const SnapshotNode& node = *nodes_[i];
    by_name_[node.name].push_back(i);
    kinds[{node.partition, node.zone, node.gpu_type, node.free_gpus.size()}].push_back(i);
  }
  contested_.resize(nodes_.size());
  for (auto& [key, kind] : kinds) kinds_.push_back(std::move(kind));
  take_busy(snapshot);
  take_queue(snapshot);
}

void StartTimes::take_busy(const Snapshot& snapshot) {
  std::map<std::string, double> promised_until;  // by node that waiting jobs will get
  for (const WaitingJob& job : snapshot.queue) {
    if (!job.start_in_s || !job.limit_s || job.names.size() != static_cast<size_t>(job.nodes)) continue;
    for (const std::string& name : job.names)
      promised_until[name] = std::max(promised_until[name], *job.start_in_s);
  }
  for (size_t i = 0; i < snapshot.busy.size(); ++i) {
    // The queue says for how long others have the node then.
    std::optional<double> free_in_s = snapshot.busy[i].free_in_s;
    if (!free_in_s) free_in_s = snapshot.busy[i].jobs_end_in_s;
    const auto promised = promised_until.find(snapshot.busy[i].node.name);
    if (!free_in_s && promised != promised_until.end()) free_in_s = promised->second;
    map_.take({snapshot.nodes.size() + i}, 0, whole_seconds(free_in_s), "");
  }
}

// In the order of the queue, each job where it fits first.
void StartTimes::take_queue(const Snapshot& snapshot) {
  for (const WaitingJob& job : snapshot.queue) {
    const std::vector<size_t> candidates = nodes_for(job);
    const auto count = static_cast<size_t>(job.nodes);
    for (const size_t node : candidates) contested_[node] = node >= snapshot.nodes.size();
    const int64_t limit_s = whole_seconds(job.limit_s);
    const int64_t from_s = whole_seconds(job.start_in_s.value_or(0));
    if (candidates.size() < count) continue;  // on nodes that the new job cannot have
    const int64_t kept_before_s = from_s - std::min(from_s, whole_seconds(job.kept_in_s.value_or(from_s)));
    if (const auto slot = map_.earliest(candidates, count, from_s, limit_s))
      map_.take(slot->nodes, slot->begin_s, std::min(slot->begin_s + limit_s, BackfillMap::kForEver), "",
                slot->begin_s - kept_before_s);
  }
}

std::vector<size_t> StartTimes::indices_of(const std::vector<std::string>& names) const {
  std::set<size_t> indices;
  for (const std::string& name : names)
    if (const auto known = by_name_.find(name); known != by_name_.end())
      indices.insert(known->second.begin(), known->second.end());
  return {indices.begin(), indices.end()};
}

std::vector<size_t> StartTimes::nodes_for(const WaitingJob& job) const {
  if (!job.names.empty()) return indices_of(job.names);
  std::vector<size_t> nodes;
  for (size_t i = 0; i < nodes_.size(); ++i)
    if (job.partition.empty() || nodes_[i]->partition == job.partition) nodes.push_back(i);
  return nodes;
}

int64_t StartTimes::length_of(std::optional<double> shorter_s) const {
  return shorter_s ? std::min(length_s_, whole_seconds(shorter_s)) : length_s_;
}

std::optional<StartTimes::Slot> StartTimes::earliest(const std::vector<size_t>& among, size_t count,
                                                     std::optional<double> length_s) const {
  const auto slot = map_.earliest(among, count, 0, length_of(length_s));
  if (!slot) return std::nullopt;
  return Slot{static_cast<double>(slot->begin_s), slot->nodes};
}

std::optional<double> StartTimes::wait_for(const std::vector<std::string>& names,
                                           std::optional<double> length_s) const {
  const std::vector<size_t> indices = indices_of(names);
  if (indices.empty() || indices.size() < names.size()) return std::nullopt;
  const auto slot = earliest(indices, indices.size(), length_s);
  return slot ? std::optional<double>(slot->wait_s) : std::nullopt;
}

std::optional<double> StartTimes::wait_for_alike(const std::vector<std::string>& names,
                                                 std::optional<double> length_s) const {
  const std::vector<size_t> indices = indices_of(names);
  if (indices.empty()) return std::nullopt;
  int64_t begin_s = 0;
  for (int64_t before_s = -1; begin_s != before_s;) {
    before_s = begin_s;
    for (const std::vector<size_t>& kind : kinds_) {
      const auto count = std::count_if(indices.begin(), indices.end(), [&](size_t node) {
        return std::find(kind.begin(), kind.end(), node) != kind.end();
      });
      if (count == 0) continue;
      const auto slot = map_.earliest(kind, static_cast<size_t>(count), before_s, length_of(length_s));
      if (!slot) return std::nullopt;
      begin_s = std::max(begin_s, slot->begin_s);
    }
  }
  return static_cast<double>(begin_s);
}

std::vector<size_t> StartTimes::free_at(double wait_s) const {
  std::vector<size_t> free;
  for (size_t i = 0; i < nodes_.size(); ++i) {
    const auto slot = map_.earliest({i}, 1, whole_seconds(wait_s), length_s_);
    if (slot && slot->begin_s == whole_seconds(wait_s)) free.push_back(i);
  }
  return free;
}

std::vector<double> StartTimes::next_times(size_t most) const {
  std::vector<double> all;
  for (size_t i = 0; i < nodes_.size(); ++i) {
    const auto slot = earliest({i}, 1);
    if (slot && slot->wait_s > 0) all.push_back(slot->wait_s);
  }
  return first_times(std::move(all), most);
}

}  // namespace sailor
