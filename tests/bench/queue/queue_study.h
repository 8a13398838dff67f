// Trainings on a busy cluster under a policy of submission: a discrete-event simulation with the simulated
// scheduler, the planner, and the product's decisions about starts and growth. Deterministic.
//
//   fixed   four nodes of one GPU type with a hand-written plan, which wait in the queue
//   now     the planner on the nodes that are idle; tries again every minute while there is none, or no plan
//   automatic  the start with the earliest expected end (planner/start), as --sailor-wait=auto
//
// Trainings of `now` and `automatic` are elastic and yield: they take nodes in helper jobs, wait in the queue
// for others, and return them when jobs of others would start on them, as the controller does (growth.h). At
// its time limit a training is submitted again for the steps that are left; `fixed` loses those since its
// last checkpoint. Times are seconds from the start of the study.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tests/bench/queue/plan_cache.h"
#include "tests/bench/queue/workload.h"

namespace sailor::bench {

enum class QueuePolicy { fixed, now, automatic };

struct Training {
  int64_t submit_s = 0;
  size_t model = 0;
  int64_t steps = 0;
  size_t kind = 0;      // of the nodes of `fixed`
  int64_t limit_s = 0;  // that its user asks for
  double slowdown = 1;  // real over predicted time
};

struct Workload {
  std::vector<BackgroundJob> background;
  std::vector<Training> trainings;
};

struct Study {
  const Snapshot& cluster;
  const std::vector<NodeKind>& kinds;
  const std::vector<StudyModel>& models;
  double days = 14;
  double load = 0.95;
  uint64_t seed = 1;
};

inline constexpr int kFixedNodes = 4;

// Background and trainings that together offer `load` of the cluster's GPU hours, the trainings an eighth of
// it under `fixed`. Before the study the background runs for a day.
Workload draw_workload(const Study& study, const std::vector<TraceJob>& trace);

struct TrainingOutcome {
  const Training* training = nullptr;  // of the workload
  double wait_s = 0, turnaround_s = 0, gpu_hours = 0;
  int parts = 0;    // jobs
  int changes = 0;  // of the plan while it ran
};

struct QueueOutcome {
  size_t jobs = 0;  // trainings
  double mean_turnaround_s = 0, p95_turnaround_s = 0, mean_wait_s = 0;
  double gpu_hours = 0, usd = 0;
  double others_mean_wait_s = 0, others_p95_wait_s = 0;
  int64_t lost_steps = 0;
  std::vector<TrainingOutcome> trainings;
};

QueueOutcome run_study(const Study& study, const Workload& workload, QueuePolicy policy, PlanCache& plans);

}  // namespace sailor::bench
