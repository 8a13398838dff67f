#include "tests/bench/queue/queue_study.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <numeric>

#include "planner/process/scratch_directory.h"
#include "tests/bench/queue/training_run.h"

namespace sailor::bench {
namespace {

constexpr int64_t kEpoch_s = 1'000'000'000, kTick_s = 60;

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

class Simulation {
 public:
  Simulation(const Study& study, const Workload& workload, QueuePolicy policy, PlanCache& plans)
      : study_(study),
        workload_(workload),
        cluster_(study.cluster, study.kinds, kEpoch_s - 86400),
        world_{study, policy, plans, cluster_, events_} {
    for (const Training& training : workload.trainings) runs_.emplace_back(training, world_);
  }

  QueueOutcome run() {
    SimulatedCluster& scheduler = cluster_.scheduler();
    for (const BackgroundJob& job : workload_.background)
      scheduler.at(kEpoch_s + job.submit_s, [this, &job] { submit_background(job); });
    for (TrainingRun& run : runs_) scheduler.at(kEpoch_s + run.training().submit_s, [&run] { run.tick(); });
    const int64_t end_s = kEpoch_s + std::llround(study_.days * 86400);
    for (int64_t now_s = kEpoch_s - 86400; now_s <= end_s || !all_ended(); now_s += kTick_s) {
      scheduler.advance_to(now_s);
      for (TrainingRun& run : runs_)
        if (kEpoch_s + run.training().submit_s <= now_s) run.tick();
    }
    while (std::any_of(others_.begin(), others_.end(), [&](const std::string& id) {
      return scheduler.find_job(id)->state == JobState::pending;
    }))
      scheduler.advance_to(scheduler.now_s() + kTick_s);
    return outcome();
  }

 private:
  void submit_background(const BackgroundJob& job) {
    const JobRequest request{.nodes = job.nodes,
                             .gpu_type = study_.kinds[job.kind].gpu_type,
                             .time_limit_s = static_cast<int>(job.limit_s)};
    const std::string id = cluster_.submit(request, job.duration_s);
    if (job.submit_s >= 0) others_.push_back(id);
  }

  bool all_ended() const {
    return std::all_of(runs_.begin(), runs_.end(),
                       [](const TrainingRun& run) { return run.ended_s().has_value(); });
  }

  QueueOutcome outcome() {
    QueueOutcome out;
    std::vector<double> turnarounds_s, waits_s, others_s;
    for (const TrainingRun& run : runs_) {
      const int64_t submit_s = kEpoch_s + run.training().submit_s;
      turnarounds_s.push_back(static_cast<double>(*run.ended_s() - submit_s));
      waits_s.push_back(static_cast<double>(*run.started_s() - submit_s));
      out.gpu_hours += run.gpu_s() / 3600;
      out.usd += run.usd();
      out.lost_steps += run.lost_steps();
      out.trainings.push_back({&run.training(), waits_s.back(), turnarounds_s.back(), run.gpu_s() / 3600,
                               run.parts(), run.changes()});
    }
    std::map<std::string, int64_t> submitted_s;
    for (const SimulatedEvent& event : cluster_.scheduler().history()) {
      if (event.kind == SimulatedEvent::Kind::submitted) submitted_s[event.job] = event.time_s;
    }
    for (const std::string& id : others_)
      others_s.push_back(
          static_cast<double>(*cluster_.scheduler().find_job(id)->start_s - submitted_s.at(id)));
    out.jobs = runs_.size();
    out.mean_turnaround_s = mean(turnarounds_s);
    out.p95_turnaround_s = p95(turnarounds_s);
    out.mean_wait_s = mean(waits_s);
    out.others_mean_wait_s = mean(others_s);
    out.others_p95_wait_s = p95(others_s);
    return out;
  }

  const Study& study_;
  const Workload& workload_;
  StudyCluster cluster_;
  const ScratchDirectory scratch_;
  const RunDirectory directory_{scratch_.path()};
  EventLog events_{directory_, false};
  StudyWorld world_;
  std::deque<TrainingRun> runs_;
  std::vector<std::string> others_;  // background jobs that count
};

}  // namespace

QueueOutcome run_study(const Study& study, const Workload& workload, QueuePolicy policy, PlanCache& plans) {
  return Simulation(study, workload, policy, plans).run();
}

}  // namespace sailor::bench
