#include "planner/scheduler/simulated_cluster.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <stdexcept>
#include <tuple>

namespace sailor {
namespace {

std::optional<int64_t> begin_of(const std::optional<BackfillMap::Slot>& slot) {
  return slot ? std::optional<int64_t>(slot->begin_s) : std::nullopt;
}

}  // namespace

using Kind = SimulatedEvent::Kind;
using Preempted = SimulatedPartition::Preempted;

SimulatedCluster::SimulatedCluster(SimulatedSite site)
    : site_(std::move(site)), now_s_(site_.start_s), plan_(site_.nodes.size()), changed_(site_.nodes.size()) {
  for (const SimulatedNode& node : site_.nodes) {
    index_[node.name] = nodes_.size();
    NodeInfo info;
    info.name = info.address = node.name;
    info.features = node.features;
    if (node.gpus > 0) info.gpus[node.gpu_type] = node.gpus;
    info.cpus = node.cpus;
    nodes_.push_back(std::move(info));
  }
  for (const SimulatedPartition& partition : site_.partitions) {
    for (const std::string& name : partition.nodes) node(name).partitions.push_back(partition.name);
  }
}

size_t SimulatedCluster::index_of(const std::string& node) const {
  const auto found = index_.find(node);
  if (found == index_.end()) throw std::runtime_error(fmt::format("there is no node {}", node));
  return found->second;
}

// --- time

int64_t SimulatedCluster::next_event_s() const {
  int64_t next = planned_.empty() ? BackfillMap::kForEver : planned_.begin()->first;
  for (const int64_t number : active_) {
    const Job& job = jobs_.at(number);
    if (job.runs()) next = std::min(next, job.ends_s);
    if (job.waits() && job.eligible_s > now_s_) next = std::min(next, job.eligible_s);
    if (job.waits()) next = std::min(next, job.gives_up_s());
  }
  return next;
}

void SimulatedCluster::advance_to(int64_t time_s) {
  for (int64_t next; (next = next_event_s()) <= time_s;) {
    now_s_ = std::max(now_s_, next);
    while (!planned_.empty() && planned_.begin()->first <= now_s_) {
      const auto what = std::move(planned_.begin()->second);
      planned_.erase(planned_.begin());
      what();
    }
    for (const int64_t number : std::set<int64_t>(active_)) {
      Job& job = jobs_.at(number);
      if (job.waits() && job.gives_up_s() <= now_s_) finish(job, JobState::cancelled);
      if (!job.runs() || job.ends_s > now_s_) continue;
      if (job.end_state == JobState::pending)
        wait_again(job);
      else
        finish(job, job.end_state);
    }
    schedule();
  }
  now_s_ = std::max(now_s_, time_s);
}

void SimulatedCluster::at(int64_t time_s, std::function<void()> what) {
  planned_.emplace(time_s, std::move(what));
}

// --- jobs

SimulatedCluster::Job SimulatedCluster::make_job(const JobRequest& request,
                                                 const SimulatedCourse& course) const {
  Job job;
  job.request = request;
  job.course = course;
  while (job.partition < site_.partitions.size() && !request.partition.empty() &&
         request.partition != partition_of(job).name)
    ++job.partition;
  if (job.partition == site_.partitions.size())
    throw std::runtime_error(fmt::format("there is no partition {}", request.partition));
  const SimulatedPartition& partition = partition_of(job);
  const std::optional<int64_t> most = partition.most_limit_s;
  if (request.time_limit_s && most && *request.time_limit_s > *most)
    throw std::runtime_error(fmt::format("partition {} allows {} s", partition.name, *most));
  if (request.time_limit_s)
    job.limit_s = *request.time_limit_s;
  else
    job.limit_s = partition.default_limit_s.value_or(most.value_or(BackfillMap::kForEver));
  job.fits = fitting(job);
  if (request.nodes < 1 || job.fits.size() < job.width())
    throw std::runtime_error(
        fmt::format("partition {} has fewer than {} such nodes", partition.name, job.width()));
  job.eligible_s = now_s_;
  job.number = next_number_;
  job.seen.id = std::to_string(job.number);
  job.seen.name = request.name;
  job.seen.partition = partition.name;
  job.seen.state = JobState::pending;
  return job;
}

std::string SimulatedCluster::add(Job job) {
  ++next_number_;
  note(Kind::submitted, job);
  const std::string id = job.seen.id;
  const bool last = comes_last(job);
  if (!last) mark_changed(job.fits);
  active_.insert(job.number);
  Job& added = jobs_.emplace(job.number, std::move(job)).first->second;
  if (last)
    take(added, slot_of(added, plan_));
  else
    schedule();
  return id;
}

std::string SimulatedCluster::submit(const JobRequest& request, const SimulatedCourse& course) {
  return add(make_job(request, course));
}

std::optional<std::string> SimulatedCluster::submit_at_once(const JobRequest& request,
                                                            const SimulatedCourse& course) {
  if (could_start(request) != now_s_) return std::nullopt;
  return add(make_job(request, course));
}

std::optional<int64_t> SimulatedCluster::could_start(const JobRequest& request) const {
  try {
    const Job job = make_job(request, {});
    if (comes_last(job)) return begin_of(slot_of(job, plan_));
    if (one_tier() && site_.backfill == SimulatedSite::Backfill::conservative) {
      BackfillMap before = plan_;  // without the jobs behind it
      for (const int64_t number : active_) {
        const Job& other = jobs_.at(number);
        if (other.waits() && other.request.nice > request.nice) before.release(other.seen.id);
      }
      return begin_of(slot_of(job, before));
    }
    SimulatedCluster then = *this;  // where it waits behind others, and says when it would start
    return then.find_job(then.submit(request))->start_s;
  } catch (const std::runtime_error&) {
    return std::nullopt;
  }
}

void SimulatedCluster::end_job(const std::string& id, JobState state) {
  const auto found = jobs_.find(number_of(id));
  if (found == jobs_.end() || !active_.contains(found->first)) return;
  finish(found->second, state);
  schedule();
}

void SimulatedCluster::forget_node_names(const std::string& id) {
  const auto found = jobs_.find(number_of(id));
  if (found == jobs_.end() || !found->second.waits()) return;
  Job& job = found->second;
  job.request.node_names.clear();
  job.fits = fitting(job);
  mark_changed(job.fits);
  schedule();
}

void SimulatedCluster::requeue(const std::string& id) {
  const auto found = jobs_.find(number_of(id));
  if (found == jobs_.end()) return;
  Job& job = found->second;
  const JobState state = job.seen.state;
  const bool ended_by_itself =
      state == JobState::completed || state == JobState::failed || state == JobState::node_failed;
  if (job.request.requeue && (job.runs() || ended_by_itself)) wait_again(job);
  schedule();
}

// --- nodes

void SimulatedCluster::fail_node(const std::string& name) {
  const size_t index = index_of(name);
  nodes_[index].up = false;
  for (const int64_t number : std::set<int64_t>(active_)) {
    Job& job = jobs_.at(number);
    const auto held = std::find(job.holds.begin(), job.holds.end(), index);
    if (!job.runs() || held == job.holds.end()) continue;
    if (job.request.no_kill && job.holds.size() > 1) {
      job.holds.erase(held);
      std::erase(job.seen.nodes, name);
    } else if (job.request.requeue) {
      wait_again(job);
    } else {
      finish(job, JobState::node_failed);
    }
  }
  schedule_on_other_nodes();
}

void SimulatedCluster::lose_contact(const std::string& name) {
  node(name).responds = false;
  schedule_on_other_nodes();
}

void SimulatedCluster::drain_node(const std::string& name) {
  node(name).draining = true;
  schedule_on_other_nodes();
}

void SimulatedCluster::return_node(const std::string& name) {
  node(name).up = node(name).responds = true;
  node(name).draining = false;
  schedule_on_other_nodes();
}

// --- what is seen

std::vector<NodeInfo> SimulatedCluster::nodes() const {
  std::vector<NodeInfo> nodes = nodes_;
  for (const int64_t number : active_) {
    for (const size_t held : jobs_.at(number).holds) nodes[held].in_use = true;
  }
  return nodes;
}

std::vector<QueuedJob> SimulatedCluster::jobs() const {
  std::vector<QueuedJob> jobs;
  for (const auto& [number, job] : jobs_) jobs.push_back(job.seen);
  return jobs;
}

std::optional<QueuedJob> SimulatedCluster::find_job(const std::string& id) const {
  const auto found = jobs_.find(number_of(id));
  return found == jobs_.end() ? std::nullopt : std::optional<QueuedJob>(found->second.seen);
}

int64_t SimulatedCluster::number_of(const std::string& id) const {
  const int64_t number = std::atoll(id.c_str());
  return std::to_string(number) == id ? number : 0;
}

void SimulatedCluster::note(Kind kind, const Job& job) {
  history_.push_back({now_s_, kind, job.seen.id});
}

// --- the scheduler

std::vector<size_t> SimulatedCluster::fitting(const Job& job) const {
  const auto has = [](const std::vector<std::string>& list, const std::string& value) {
    return std::find(list.begin(), list.end(), value) != list.end();
  };
  const JobRequest& request = job.request;
  std::vector<size_t> fitting;
  for (size_t i = 0; i < nodes_.size(); ++i) {
    const NodeInfo& node = nodes_[i];
    if (!has(node.partitions, partition_of(job).name)) continue;
    if (!request.node_names.empty() && !has(request.node_names, node.name)) continue;
    if (!request.feature.empty() && !has(node.features, request.feature)) continue;
    if (has(request.excluded_nodes, node.name)) continue;
    if (!request.gpu_type.empty() && !node.gpus.contains(request.gpu_type)) continue;
    fitting.push_back(i);
  }
  return fitting;
}

std::vector<size_t> SimulatedCluster::usable(const Job& job) const {
  std::vector<size_t> nodes = job.fits;
  std::erase_if(nodes, [&](size_t node) { return nodes_[node].lost() || nodes_[node].draining; });
  return nodes;
}

bool SimulatedCluster::comes_last(const Job& job) const {
  return one_tier() && std::all_of(active_.begin(), active_.end(), [&](int64_t number) {
           const Job& other = jobs_.at(number);
           return !other.waits() || other.request.nice <= job.request.nice;
         });
}

std::optional<BackfillMap::Slot> SimulatedCluster::slot_of(const Job& job, const BackfillMap& plan) const {
  const int64_t from_s = std::max(now_s_, job.eligible_s);
  auto slot = plan.earliest(usable(job), job.width(), from_s, job.longest_s(from_s));
  if (!job.request.least_s || (slot && slot->begin_s == from_s)) return slot;
  slot = plan.earliest(usable(job), job.width(), from_s, *job.request.least_s);
  return slot && slot->begin_s < job.gives_up_s() ? slot : std::nullopt;
}

std::vector<SimulatedCluster::Job*> SimulatedCluster::waiting() {
  std::vector<Job*> jobs;
  for (const int64_t number : active_) {
    if (Job& job = jobs_.at(number); job.waits()) jobs.push_back(&job);
  }
  std::stable_sort(jobs.begin(), jobs.end(), [this](const Job* a, const Job* b) {
    return std::make_tuple(-partition_of(*a).tier, a->request.nice) <
           std::make_tuple(-partition_of(*b).tier, b->request.nice);
  });
  return jobs;
}

void SimulatedCluster::schedule_on_other_nodes() {
  for (auto& [number, job] : jobs_) job.has_preempted = false;  // its nodes may be gone
  changed_.assign(changed_.size(), true);
  schedule();
}

bool SimulatedCluster::one_tier() const {
  return std::all_of(site_.partitions.begin(), site_.partitions.end(), [&](const SimulatedPartition& other) {
    return other.tier == site_.partitions.front().tier;
  });
}

void SimulatedCluster::mark_changed(const std::vector<size_t>& nodes) {
  for (const size_t node : nodes) changed_[node] = true;
}

// With the nodes of jobs that may move to or from changed ones, and so on. Where jobs preempt others, or wait
// without reservation, all nodes.
void SimulatedCluster::mark_concerned(const std::vector<Job*>& queue) {
  if (site_.backfill == SimulatedSite::Backfill::easy || !one_tier()) changed_.assign(changed_.size(), true);
  const auto changed = [this](size_t node) { return static_cast<bool>(changed_[node]); };
  for (const Job* job : queue)
    if (job->seen.start_s && *job->seen.start_s <= now_s_) mark_changed(job->fits);
  for (bool more = true; more;) {
    more = false;
    for (const Job* job : queue) {
      if (std::none_of(job->fits.begin(), job->fits.end(), changed) ||
          std::all_of(job->fits.begin(), job->fits.end(), changed))
        continue;
      mark_changed(job->fits);
      more = true;
    }
  }
}

void SimulatedCluster::schedule() {
  const std::vector<Job*> queue = waiting();
  mark_concerned(queue);
  for (size_t node = 0; node < changed_.size(); ++node)
    if (changed_[node]) plan_.release_all(node);
  for (const int64_t number : active_) {
    const Job& job = jobs_.at(number);
    if (!job.runs()) continue;
    const int64_t end_s = job.preempting ? job.ends_s : job.limit_end_s;
    for (const size_t node : job.holds)
      if (changed_[node]) plan_.take({node}, now_s_, end_s, job.seen.id);
  }
  reserved_ = false;
  for (Job* job : queue) {
    if (!changed_[job->fits.front()]) continue;  // with all of its nodes
    const auto slot = slot_of(*job, plan_);
    const bool starts = slot && slot->begin_s == now_s_;
    // Those on their way out have freed their nodes, or will; what is free now is another question.
    if (!starts && job->eligible_s <= now_s_ && !job->has_preempted && preempt_for(*job)) return schedule();
    take(*job, slot);
  }
  changed_.assign(changed_.size(), false);
}

void SimulatedCluster::take(Job& job, const std::optional<BackfillMap::Slot>& slot) {
  job.seen.start_s.reset();
  if (!slot) return;
  int64_t limit_s = job.limit_s;
  if (job.request.least_s) {
    limit_s = job.longest_s(slot->begin_s);
    const auto longest = plan_.earliest(slot->nodes, slot->nodes.size(), slot->begin_s, limit_s);
    if (!longest || longest->begin_s != slot->begin_s) limit_s = *job.request.least_s;
  }
  if (slot->begin_s == now_s_) {
    job.limit_s = limit_s;
    start(job, slot->nodes);
    plan_.take(job.holds, now_s_, job.limit_end_s, job.seen.id);
    return;
  }
  job.seen.start_s = slot->begin_s;
  if (reserved_ && site_.backfill == SimulatedSite::Backfill::easy && !job.has_preempted) return;
  reserved_ = true;
  plan_.take(slot->nodes, slot->begin_s, std::min(slot->begin_s + limit_s, BackfillMap::kForEver),
             job.seen.id);
}

bool SimulatedCluster::preempt_for(Job& job) {
  if (one_tier()) return false;
  std::vector<Job*> candidates;
  for (const int64_t number : active_) {
    Job& other = jobs_.at(number);
    if (other.runs() && !other.preempting && partition_of(other).tier < partition_of(job).tier &&
        partition_of(other).preempted != Preempted::never)
      candidates.push_back(&other);
  }
  std::stable_sort(candidates.begin(), candidates.end(), [this](const Job* a, const Job* b) {
    return std::make_tuple(partition_of(*a).tier, -*a->seen.start_s, -a->number) <
           std::make_tuple(partition_of(*b).tier, -*b->seen.start_s, -b->number);
  });
  BackfillMap without = plan_;
  std::optional<BackfillMap::Slot> slot;
  size_t victims = 0;
  while (victims < candidates.size() && !(slot && slot->begin_s == now_s_)) {
    without.release(candidates[victims++]->seen.id);
    slot = without.earliest(usable(job), job.width(), now_s_, job.limit_s);
  }
  if (!slot || slot->begin_s != now_s_) return false;
  job.has_preempted = true;
  for (size_t i = 0; i < victims; ++i) {
    const std::vector<size_t>& held = candidates[i]->holds;
    const bool in_the_way = std::any_of(held.begin(), held.end(), [&](size_t node) {
      return std::find(slot->nodes.begin(), slot->nodes.end(), node) != slot->nodes.end();
    });
    if (in_the_way) preempt(*candidates[i]);
  }
  return true;
}

void SimulatedCluster::preempt(Job& job) {
  const SimulatedPartition& partition = partition_of(job);
  const bool again = partition.preempted == Preempted::requeued && job.request.requeue;
  note(Kind::preempting, job);
  job.preempting = true;
  job.seen.preempted = true;
  if (partition.grace_s > 0) {
    if (now_s_ + partition.grace_s >= job.ends_s) return;  // it is done by then
    job.ends_s = now_s_ + partition.grace_s;
    job.seen.end_s = job.ends_s;
    job.end_state = again ? JobState::pending : JobState::preempted;
  } else if (again) {
    wait_again(job);
  } else {
    finish(job, JobState::preempted);
  }
}

void SimulatedCluster::start(Job& job, const std::vector<size_t>& nodes) {
  job.holds = nodes;
  job.has_preempted = false;
  job.limit_end_s = std::min(now_s_ + job.limit_s, BackfillMap::kForEver);
  job.ends_s = job.limit_end_s;
  job.end_state = JobState::timed_out;
  if (job.course.takes_s && now_s_ + *job.course.takes_s <= job.limit_end_s) {
    job.ends_s = now_s_ + *job.course.takes_s;
    job.end_state = job.course.fails ? JobState::failed : JobState::completed;
  }
  QueuedJob& seen = job.seen;
  seen.state = JobState::running;
  seen.failed = seen.out_of_time = seen.preempted = false;
  seen.start_s = now_s_;
  seen.end_s.reset();
  if (job.limit_end_s < BackfillMap::kForEver) seen.end_s = job.limit_end_s;
  seen.nodes.clear();
  seen.cpus = 0;
  seen.gpus_on.clear();
  for (const size_t node : nodes) {
    seen.nodes.push_back(nodes_[node].name);
    seen.cpus += nodes_[node].cpus;
    for (const auto& [type, gpus] : nodes_[node].gpus) seen.gpus_on[nodes_[node].name] += gpus;
  }
  seen.head_node = seen.nodes.front();
  note(Kind::started, job);
}

void SimulatedCluster::release(Job& job) {
  mark_changed(job.waits() ? job.fits : job.holds);
  job.holds.clear();
  job.preempting = false;
  job.has_preempted = false;
}

void SimulatedCluster::finish(Job& job, JobState state) {
  release(job);
  active_.erase(job.number);
  job.seen.state = state;
  job.seen.failed = state == JobState::failed || state == JobState::node_failed;
  job.seen.out_of_time = state == JobState::timed_out;
  job.seen.end_s = now_s_;
  note(Kind::ended, job);
}

void SimulatedCluster::wait_again(Job& job) {
  release(job);
  active_.insert(job.number);
  mark_changed(job.fits);
  job.seen.state = JobState::pending;
  job.seen.failed = false;
  ++job.seen.restarts;
  job.seen.nodes.clear();
  job.seen.head_node.clear();
  job.seen.start_s.reset();
  job.seen.end_s.reset();
  job.eligible_s = now_s_ + site_.requeue_delay_s;
  note(Kind::requeued, job);
}

}  // namespace sailor
