#include "tests/bench/queue/queue_study.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "planner/scheduler/simulated_cluster.h"
#include "planner/simulator/cost.h"
#include "planner/start/choose_start.h"
#include "trainer/elastic/growth_choice.h"

namespace sailor::bench {
namespace {

constexpr int64_t kEpoch_s = 1'000'000'000, kTick_s = 60;
constexpr double kChange_s = 15;        // training pauses when the plan changes
constexpr double kCheckpoint_s = 1800;  // between checkpoints of `fixed`

// A training and the jobs that it runs in.
struct Run {
  const Training* training = nullptr;
  double steps_left = 0;
  std::string job;  // empty = not submitted
  std::vector<std::string> helpers;
  double iteration_s = 0;              // as predicted, of the plan in force
  std::optional<double> since_s{};     // steps are counted up to then; nothing = not running
  std::optional<int64_t> started_s{};  // first
  std::optional<int64_t> ended_s{};
  std::vector<std::string> nodes;  // held
  double gpu_s = 0, usd = 0;
  int64_t lost_steps = 0;
  std::string asked;  // the last question about growth
  int plan = 0;       // number of the plan in force

  double step_s() const { return iteration_s * training->slowdown; }
};

SimulatedSite site_of(const std::vector<NodeKind>& kinds) {
  SimulatedSite site;
  site.partitions.push_back({"all", {}});
  site.partitions.front().most_limit_s = kLongestLimit_s;
  site.start_s = kEpoch_s - 86400;
  for (const NodeKind& kind : kinds)
    for (const std::string& name : kind.names) {
      site.nodes.push_back({.name = name, .gpu_type = kind.gpu_type, .gpus = kind.gpus});
      site.partitions.front().nodes.push_back(name);
    }
  return site;
}

class Simulation {
 public:
  Simulation(const Study& study, const Workload& workload, QueuePolicy policy, PlanCache& plans)
      : study_(study), workload_(workload), policy_(policy), plans_(plans), cluster_(site_of(study.kinds)) {
    for (const SnapshotNode& node : study.cluster.nodes) nodes_[node.name] = &node;
    runs_.reserve(workload.trainings.size());  // references to them stay valid
    for (const Training& training : workload.trainings) {
      Run& run = runs_.emplace_back();
      run.training = &training;
      run.steps_left = static_cast<double>(training.steps);
    }
  }

  QueueOutcome run() {
    for (const BackgroundJob& job : workload_.background)
      cluster_.at(kEpoch_s + job.submit_s, [this, &job] { submit_background(job); });
    for (Run& run : runs_) cluster_.at(kEpoch_s + run.training->submit_s, [this, &run] { submit(run); });
    const int64_t end_s = kEpoch_s + std::llround(study_.days * 86400);
    for (int64_t now_s = kEpoch_s - 86400; now_s <= end_s || !all_ended(); now_s += kTick_s) {
      cluster_.advance_to(now_s);
      for (Run& run : runs_) tick(run);
    }
    while (std::any_of(others_.begin(), others_.end(), [&](const std::string& id) {
      return cluster_.find_job(id)->state == JobState::pending;
    }))
      cluster_.advance_to(cluster_.now_s() + kTick_s);
    return outcome();
  }

 private:
  void submit_background(const BackgroundJob& job) {
    const JobRequest request{.nodes = job.nodes,
                             .gpu_type = study_.kinds[job.kind].gpu_type,
                             .time_limit_s = static_cast<int>(job.limit_s)};
    const std::string id = enqueue(request, job.duration_s);
    if (job.submit_s >= 0) others_.push_back(id);
  }

  std::string enqueue(const JobRequest& request, std::optional<int64_t> takes_s) {
    const std::string id = cluster_.submit(request, {.takes_s = takes_s, .fails = false});
    requests_[std::stoll(id)] = request;
    return id;
  }

  // --- trainings

  void submit(Run& run) {
    if (policy_ == QueuePolicy::fixed) return submit_fixed(run);
    const std::vector<std::string> idle = idle_for(run.training->limit_s);
    const Snapshot cluster = view(idle);
    SearchResult now;
    if (!idle.empty()) now = plans_.search(run.training->model, cluster);
    if (policy_ == QueuePolicy::now) {
      if (now.status == SearchStatus::found) submit_plan(run, now.candidates.front());
      return;
    }
    StartQuestion question;
    question.steps = std::max<int64_t>(1, std::llround(run.steps_left));
    question.length_s = static_cast<double>(run.training->limit_s);
    question.grows = true;
    const StartChoice choice = choose_start(
        cluster, now, question,
        [&](const Snapshot& nodes, double) { return plans_.search(run.training->model, nodes); },
        [&](const StartOption& option) -> std::optional<double> {
          const auto start_s = cluster_.could_start(request_of(run, option.candidate.plan));
          if (!start_s) return std::nullopt;
          return static_cast<double>(*start_s - cluster_.now_s());
        });
    if (!choice.options.empty()) submit_plan(run, choice.options.front().candidate);
  }

  void submit_fixed(Run& run) {
    const NodeKind& kind = study_.kinds[run.training->kind];
    Snapshot nodes = study_.cluster;
    std::erase_if(nodes.nodes, [&](const SnapshotNode& node) {
      const auto end = kind.names.begin() + kFixedNodes;
      return std::find(kind.names.begin(), end, node.name) == end;
    });
    submit_plan(run, *hand_written(study_.models[run.training->model].inputs->context(nodes)));
  }

  // The nodes of a kind if all are of one, else these.
  JobRequest request_of(const Run& run, const Plan& plan) const {
    const std::vector<std::string> names = node_names(plan);
    JobRequest request{.nodes = static_cast<int>(names.size()),
                       .time_limit_s = static_cast<int>(run.training->limit_s)};
    const std::set<std::string> types = gpu_types_of(plan);
    if (types.size() == 1)
      request.gpu_type = *types.begin();
    else
      request.node_names = names;
    return request;
  }

  void submit_plan(Run& run, const Candidate& candidate) {
    run.iteration_s = candidate.prediction.iteration_s;
    run.job =
        enqueue(request_of(run, candidate.plan), std::llround(std::ceil(run.steps_left * run.step_s())));
    run.asked.clear();
  }

  void tick(Run& run) {
    if (run.ended_s || run.training->submit_s > cluster_.now_s() - kEpoch_s) return;
    if (run.job.empty()) return submit(run);
    const QueuedJob job = *cluster_.find_job(run.job);
    if (job.state == JobState::pending) return;
    if (!run.since_s) {
      run.since_s = static_cast<double>(*job.start_s);
      if (!run.started_s) run.started_s = *job.start_s;
      run.nodes = job.nodes;
    }
    if (job.state != JobState::running) return end_part(run, job);
    if (policy_ != QueuePolicy::fixed) grow(run, job);
  }

  // Steps and GPU hours up to a time.
  void count_until(Run& run, double time_s) {
    run.steps_left -= std::max(0.0, time_s - *run.since_s) / run.step_s();
    for (const std::string& name : run.nodes) {
      const double gpu_s = nodes_.at(name)->gpus * (time_s - *run.since_s);
      run.gpu_s += gpu_s;
      run.usd += gpu_s / 3600 * usd_per_gpu_hour(context(run), *nodes_.at(name)).value_or(0);
    }
    run.since_s = time_s;
  }

  void end_part(Run& run, const QueuedJob& job) {
    const double part_s = static_cast<double>(*job.end_s - *job.start_s);
    count_until(run, static_cast<double>(*job.end_s));
    run.since_s.reset();
    run.nodes.clear();
    run.helpers.clear();
    ++run.plan;
    if (job.state == JobState::completed) {
      run.ended_s = *job.end_s;
      return;
    }
    if (policy_ == QueuePolicy::fixed) {
      const double lost_s = std::fmod(part_s, kCheckpoint_s);
      run.steps_left += lost_s / run.step_s();
      run.lost_steps += std::llround(lost_s / run.step_s());
    }
    run.job.clear();
    submit(run);
  }

  void grow(Run& run, const QueuedJob& job) {
    const std::vector<std::string> idle = idle_for(*job.end_s - cluster_.now_s());
    if (idle.empty()) return;
    std::string question;
    for (const std::vector<std::string>& names : {run.nodes, idle})
      for (const NodeKind& kind : study_.kinds)
        question += std::to_string(std::count_if(names.begin(), names.end(),
                                                 [&](const std::string& name) {
                                                   return nodes_.at(name)->gpu_type == kind.gpu_type;
                                                 })) +
                    " ";
    if (question == run.asked) return;
    run.asked = question;
    std::vector<std::string> together = run.nodes;
    together.insert(together.end(), idle.begin(), idle.end());
    const SearchResult found = plans_.search(run.training->model, only(together));
    if (found.status != SearchStatus::found) return;
    const Candidate& best = found.candidates.front();
    const auto now_s = static_cast<double>(cluster_.now_s());
    const auto left = std::llround(run.steps_left - std::max(0.0, now_s - *run.since_s) / run.step_s());
    if (!pays_in_time(run.iteration_s, best.prediction.iteration_s, kChange_s, left,
                      static_cast<double>(*job.end_s) - now_s))
      return;
    count_until(run, now_s);
    for (const std::string& name : node_names(best.plan)) {
      if (std::find(run.nodes.begin(), run.nodes.end(), name) != run.nodes.end()) continue;
      const JobRequest request{.node_names = {name},
                               .time_limit_s = static_cast<int>(*job.end_s - cluster_.now_s())};
      const auto helper = cluster_.submit_at_once(request);
      if (!helper) continue;
      requests_[std::stoll(*helper)] = request;
      run.helpers.push_back(*helper);
      run.nodes.push_back(name);
    }
    run.iteration_s = best.prediction.iteration_s;
    run.steps_left += kChange_s / run.step_s();
    const double end_s = now_s + std::ceil(std::max(0.0, run.steps_left * run.step_s()));
    cluster_.at(std::llround(end_s), [this, &run, plan = ++run.plan] {
      if (plan != run.plan) return;
      for (const std::string& helper : run.helpers) cluster_.end_job(helper, JobState::cancelled);
      cluster_.end_job(run.job, JobState::completed);
    });
  }

  // --- the cluster

  // Nodes on which a job of this length could start at once.
  std::vector<std::string> idle_for(int64_t length_s) const {
    std::vector<std::string> idle;
    for (const NodeInfo& node : cluster_.nodes()) {
      if (node.in_use) continue;
      const JobRequest request{.node_names = {node.name}, .time_limit_s = static_cast<int>(length_s)};
      if (cluster_.could_start(request) == cluster_.now_s()) idle.push_back(node.name);
    }
    return idle;
  }

  Snapshot only(const std::vector<std::string>& names) const {
    Snapshot nodes = study_.cluster;
    nodes.nodes.clear();
    for (const std::string& name : names) nodes.nodes.push_back(*nodes_.at(name));
    return nodes;
  }

  // What a submission sees: free nodes, busy ones with the limits of their jobs, the queue.
  Snapshot view(const std::vector<std::string>& idle) const {
    Snapshot view = only(idle);
    std::map<std::string, double> free_in_s;
    for (const auto& [name, node] : nodes_) free_in_s[name] = 0;
    for (const auto& [id, request] : requests_) {
      const QueuedJob job = *cluster_.find_job(std::to_string(id));
      if (job.state == JobState::running) {
        for (const std::string& name : job.nodes)
          free_in_s[name] = static_cast<double>(*job.end_s - cluster_.now_s());
      } else if (job.state == JobState::pending) {
        std::vector<std::string> names = request.node_names;
        if (names.empty()) {
          for (const NodeKind& kind : study_.kinds)
            if (kind.gpu_type == request.gpu_type) names = kind.names;
        }
        WaitingJob waiting{
            .nodes = request.node_names.empty() ? request.nodes : static_cast<int>(names.size()),
            .names = std::move(names),
            .limit_s = *request.time_limit_s};
        if (job.start_s) waiting.start_in_s = static_cast<double>(*job.start_s - cluster_.now_s());
        view.queue.push_back(std::move(waiting));
      }
    }
    for (const auto& [name, node] : nodes_)
      if (std::find(idle.begin(), idle.end(), name) == idle.end())
        view.busy.push_back({*node, "in use", free_in_s.at(name)});
    return view;
  }

  PlanningContext context(const Run& run) const {
    return study_.models[run.training->model].inputs->context();
  }

  bool all_ended() const {
    return std::all_of(runs_.begin(), runs_.end(), [](const Run& run) { return run.ended_s.has_value(); });
  }

  QueueOutcome outcome() const;

  const Study& study_;
  const Workload& workload_;
  const QueuePolicy policy_;
  PlanCache& plans_;
  SimulatedCluster cluster_;
  std::map<std::string, const SnapshotNode*> nodes_;
  std::map<int64_t, JobRequest> requests_;  // of all jobs, by the number that is their id
  std::vector<Run> runs_;
  std::vector<std::string> others_;  // background jobs that count
};

double mean(const std::vector<double>& values) {
  return values.empty()
             ? 0
             : std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double p95(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(std::ceil(0.95 * static_cast<double>(values.size()))) - 1];
}

QueueOutcome Simulation::outcome() const {
  QueueOutcome out;
  std::vector<double> turnarounds_s, waits_s, others_s;
  for (const Run& run : runs_) {
    const int64_t submit_s = kEpoch_s + run.training->submit_s;
    turnarounds_s.push_back(static_cast<double>(*run.ended_s - submit_s));
    waits_s.push_back(static_cast<double>(*run.started_s - submit_s));
    out.gpu_hours += run.gpu_s / 3600;
    out.usd += run.usd;
    out.lost_steps += run.lost_steps;
  }
  std::map<std::string, int64_t> submitted_s;
  for (const SimulatedEvent& event : cluster_.history()) {
    if (event.kind == SimulatedEvent::Kind::submitted) submitted_s[event.job] = event.time_s;
  }
  for (const std::string& id : others_)
    others_s.push_back(static_cast<double>(*cluster_.find_job(id)->start_s - submitted_s.at(id)));
  out.jobs = runs_.size();
  out.mean_turnaround_s = mean(turnarounds_s);
  out.p95_turnaround_s = p95(turnarounds_s);
  out.mean_wait_s = mean(waits_s);
  out.others_mean_wait_s = mean(others_s);
  out.others_p95_wait_s = p95(others_s);
  return out;
}

}  // namespace

QueueOutcome run_study(const Study& study, const Workload& workload, QueuePolicy policy, PlanCache& plans) {
  return Simulation(study, workload, policy, plans).run();
}

}  // namespace sailor::bench
