// Replays an availability trace against the planner and the simulator: how much training a job gets done when
// GPUs come and go, by what it does about it.
//
// Between two changes a job trains at the pace that the simulator predicts for its plan. A change that takes
// GPUs from it costs what its policy says; one that brings GPUs is taken up where that pays. What a policy
// knows is the past only. Deterministic but for the search's time limit.
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
  elastic,   // reconfigures what is left in place; state comes from peers where they hold all of it
  restart,   // ends and starts again from the last checkpoint, on what is there
  full_set,  // runs the plan for the trace's most GPUs only; from the last checkpoint once they are all back
  no_cost    // the fastest plans, as if changes cost nothing
};
const char* to_string(ReplayPolicy policy);

struct ReplayOptions {
  // Seconds from a loss, or the decision to grow, until the next step. What the paper measured for 16 -> 20
  // GPUs (section 5: planning 0.1, cleanup 3, broadcast 1.25, groups 4.5, model 2, data loaders 0.5).
  double reconfigure_s = 11.35;
  // Slurm holds a requeued job back for the life of its credential, 120 s; then its ranks start and load.
  double restart_s = 130;
  int64_t checkpoint_steps = 0;  // iterations between two checkpoints; 0 = as many as checkpoint_s holds
  double checkpoint_s = 600;
  // How soon the next loss is expected when there was none: growing has to pay until then.
  double expected_calm_s = 3600;
};

// What happened at one change, for explanations.
struct ReplayEvent {
  double at_s = 0;
  int gpus = 0;  // that are there
  enum class What { started, grown, shrunk, moved, kept, waiting, finished } what = What::kept;
  int64_t lost_steps = 0;
  double iteration_s = 0;  // from now on; 0 = none
  std::string plan;        // one line; empty = none
};
const char* to_string(ReplayEvent::What what);

struct ReplayOutcome {
  ReplayPolicy policy = ReplayPolicy::elastic;
  int64_t steps = 0;                    // that were done and kept
  std::optional<double> finished_at_s;  // the job's last step
  // These add up to the time until the end or the last step.
  double trained_s = 0;   // of steps that were kept
  double lost_s = 0;      // of steps that were not
  double changing_s = 0;  // reconfiguring or starting again
  double waiting_s = 0;   // for GPUs
  int changes = 0;        // reconfigurations or starts after the first
  int64_t lost_steps = 0;
  double usd = 0;  // of the GPUs that it held, and of traffic between zones
  std::vector<ReplayEvent> events;
};

// The trace in GPUs of a job's cluster.
struct ReplayInput {
  std::vector<AvailabilityTrace::Change> changes;  // counts of GPUs by pool
  double end_s = 0;
  std::function<TraceCluster()> cluster;  // a new one, with no GPU yet
};

// `context` says everything but the snapshot. Throws what search() throws.
std::vector<ReplayOutcome> replay(const PlanningContext& context, const PlanOptions& options,
                                  const ReplayInput& input, const ReplayOptions& costs,
                                  const std::vector<ReplayPolicy>& policies);

}  // namespace sailor
