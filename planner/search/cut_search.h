// The inner search: for one microbatch size and one D, the best cut of the layers into stages and the best
// mix of replicas per stage.
//
// Dynamic programming from the last layer to the first over partial pipelines (labels), with dominance and a
// bound. A stage's memory depends on how many stages follow it, which is known in this direction. A label
// dominates another at the same layer behind the same leading mix when it has no more stages, uses no more of
// any resource and can end in no worse time and cost whatever comes before. Exact for the mixes it is given.
// Holds no state between calls.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "planner/search/replica_mix.h"

namespace sailor {

// What to minimise, and under which limits.
struct Goal {
  Objective objective = Objective::throughput;
  double max_usd = 0;          // infinite when there is no limit
  double max_iteration_s = 0;  // infinite when there is no limit
};

struct ChosenStage {
  int first_layer = 0;
  int end_layer = 0;
  const ReplicaMix* mix = nullptr;
};

struct Cut {
  std::vector<ChosenStage> stages;  // first to last
  double iteration_s = 0;           // as the cost model of StageCosts adds it up
  double usd = 0;
  double value(const Goal& goal) const { return goal.objective == Objective::throughput ? iteration_s : usd; }
};

struct CutProblem {
  const StageCosts& costs;
  const Resources& resources;
  const std::vector<ReplicaMix>& mixes;
  int replicas = 1;
  double microbatches = 1;  // per pipeline, of the busiest
  double overhead_s = 0;
  Goal goal;
  bool dominance = true;  // off: for measurements
  bool bounding = true;
  int max_stages = 1 << 20;
  size_t max_labels = 400000;
};

struct CutOutcome {
  bool complete = true;  // false: stopped by time or by max_labels
  int64_t labels = 0;
  bool out_of_memory = false;  // some stage was left out for memory
  bool over_budget = false;
  bool too_slow = false;
};

// Calls `found` for every complete cut that meets the limits and is better than `threshold()` at that moment;
// `threshold` is what the caller would still accept (it usually falls as cuts are found). `expired` is
// polled.
CutOutcome search_cuts(const CutProblem& problem, const std::function<double()>& threshold,
                       const std::function<void(Cut)>& found, const std::function<bool()>& expired);

}  // namespace sailor
