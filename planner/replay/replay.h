// Replays an availability trace with the planner and the simulator: the progress of a training job while GPUs
// come and go, for several policies.
//
// Between two changes a job trains at the rate that the simulator predicts for its plan. The cost of losing
// GPUs depends on the policy; new GPUs are used when that pays. Policies only know the past. Deterministic
// except for the search's time limit.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "planner/replay/trace_cluster.h"
#include "planner/search/search.h"

namespace sailor {

enum class ReplayPolicy {
  elastic,  // reconfigures on the remaining GPUs; state comes from peers if they have all of it
  restart,  // ends, and restarts from the last checkpoint on the available GPUs
  // only runs the plan for the maximum GPUs; restarts from the last checkpoint when they are all back
  full_set,
  no_cost  // the fastest plans, as if changes cost nothing
};
const char* to_string(ReplayPolicy policy);

struct ReplayOptions {
  // Seconds from a loss, or the decision to grow, until the next step. The default is the paper's measurement
  // for 16 -> 20 GPUs (section 5: planning 0.1, cleanup 3, broadcast 1.25, groups 4.5, model 2, data loaders
  // 0.5).
  double reconfigure_s = 11.35;
  // Slurm holds back a requeued job for the life of its credential, 120 s; then its ranks start and load.
  double restart_s = 130;
  int64_t checkpoint_steps = 0;  // iterations between checkpoints; 0 = those in checkpoint_s
  double checkpoint_s = 600;
  // Expected time to the next loss when there was none yet: growing has to pay within it.
  double expected_calm_s = 3600;
};

// An event at one change, for explanations.
struct ReplayEvent {
  double at_s = 0;
  int gpus = 0;  // available GPUs
  enum class What { started, grown, shrunk, moved, kept, waiting, finished } what = What::kept;
  int64_t lost_steps = 0;
  double iteration_s = 0;  // from then on; 0 = none
  std::string plan;        // one line; empty = none
};
const char* to_string(ReplayEvent::What what);

struct ReplayOutcome {
  ReplayPolicy policy = ReplayPolicy::elastic;
  int64_t steps = 0;                    // steps that were not lost
  std::optional<double> finished_at_s;  // the job's last step
  // These add up to the time until the end or the last step.
  double trained_s = 0;   // of steps that were kept
  double lost_s = 0;      // of steps that were not
  double changing_s = 0;  // reconfigurations and restarts
  double waiting_s = 0;   // for GPUs
  int changes = 0;        // reconfigurations or starts after the first
  int64_t lost_steps = 0;
  double usd = 0;  // GPUs that the job held, and traffic between zones
  std::vector<ReplayEvent> events;
};

// The trace as GPUs of a job's cluster.
struct ReplayInput {
  std::vector<AvailabilityTrace::Change> changes;  // counts of GPUs by pool
  double end_s = 0;
  std::function<TraceCluster()> cluster;  // makes a new cluster without GPUs
};

// `context` has everything but the snapshot. Throws what search() throws.
std::vector<ReplayOutcome> replay(const PlanningContext& context, const PlanOptions& options,
                                  const ReplayInput& input, const ReplayOptions& costs,
                                  const std::vector<ReplayPolicy>& policies);

}  // namespace sailor
