// Chooses the nodes of the cluster that a running job should take, if any: free ones together, and nodes that
// are in use, one of each kind, to wait for. Pure. The controller runs it in its own thread, because it
// searches several times.
#pragma once

#include <compare>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "planner/plan/plan.h"
#include "planner/spec/job_spec.h"
#include "planner/spec/snapshot.h"

namespace sailor {

// A GPU of the job with a process.
struct LiveGpu {
  std::string node;  // its name in plans
  int gpu = 0;

  auto operator<=>(const LiveGpu&) const = default;
};

// A kind of nodes: the scheduler may give any of them, and the plan would be the same.
bool same_kind(const SnapshotNode& a, const SnapshotNode& b);
// "2 TYPE (PARTITION)"
std::string describe_kind(const SnapshotNode& node);

// Makes the plans of a choice. Used from one thread at a time.
class GrowthPlanner {
 public:
  virtual ~GrowthPlanner() = default;
  // For another thread.
  virtual std::shared_ptr<const GrowthPlanner> copy() const = 0;
  virtual Objective objective() const = 0;
  // Whether a node of the cluster can be used at all.
  virtual bool could_use(const SnapshotNode& node) const = 0;
  // Nothing if it is not known.
  virtual std::optional<PlanPrediction> prediction_of(const Plan& plan) const = 0;
  // On GPUs of the job and the free ones of further nodes, instead of `previous`. Nothing if there is none.
  virtual std::optional<Plan> plan_with(std::vector<LiveGpu> gpus, const std::vector<SnapshotNode>& more,
                                        const Plan& previous) const = 0;
};

struct GrowthQuestion {
  std::shared_ptr<const GrowthPlanner> planner;
  Plan plan;                       // in force
  std::vector<LiveGpu> gpus;       // with a process
  std::vector<SnapshotNode> free;  // nodes that the job could get now
  // One node of each kind that other jobs use, with all that the job could get of it.
  std::vector<SnapshotNode> later{};
  std::vector<WantedNode> wanted{};  // of the job's helper nodes
  std::optional<int> most_new;       // maximum number of nodes to take; nothing = no limit
  double iteration_s = 0;            // measured under the plan in force
  int64_t steps_left = 0;
  std::optional<double> time_left_s;  // until the job's time limit
  double change_s = 0;                // downtime of training when the plan changes
};

struct GrowthAnswer {
  // Nodes to take; their free GPUs are those that the plan uses. Empty = none is worth it.
  std::vector<SnapshotNode> nodes;
  double iteration_s = 0;  // with these nodes, from measurement and prediction; 0 = no plan uses any
  double value = 0;        // of the objective with these nodes, as predicted; to be minimized
  std::string why;         // one line: the gain, or why none is worth it
  // If `nodes` is empty: nodes of `later` to wait for, each of which pays alone, by the objective.
  struct Wait {
    SnapshotNode node;  // with the GPUs that the plan uses
    double iteration_s = 0, value = 0;
    std::string why;
  };
  std::vector<Wait> waits{};
  // Nodes to return to jobs that wait for them; then nothing else is answered.
  std::vector<WantedNode> returns{};
};

GrowthAnswer choose_growth(const GrowthQuestion& question);

// The shortest time for which a node is useful to the job: the scheduler may give it for no longer.
double least_use_s(double change_s);

// Of these nodes, the first ones that the limits of the cluster allow; shared nodes with some of their GPUs.
std::vector<SnapshotNode> within_limits(const std::vector<SnapshotNode>& nodes, std::vector<GpuLimit> limits);

// Does a change pay that stops training for `change_s` and changes the iteration time from `now_s` to
// `then_s`, for the remaining steps or the remaining time? The gain must be at least 2 %.
bool pays_in_time(double now_s, double then_s, double change_s, int64_t steps_left,
                  std::optional<double> time_left_s);

}  // namespace sailor
