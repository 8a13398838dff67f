// The inner search: for one microbatch size and one D, the cuts of the layers into stages, each stage in a
// mode (stage_modes.h), whose lower bound is better than what is known.
//
// Dynamic programming from the last layer to the first over partial pipelines (labels), with dominance and
// bounds. A stage's memory depends on how many stages follow it, which is known in this direction. A label
// dominates another at the same layer behind the same leading mode when it has no more stages, uses no more
// of any resource and can end in no worse time and cost whatever comes before. Holds no state between calls.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "planner/search/goal.h"
#include "planner/search/mode_costs.h"

namespace sailor {

// A cut with modes; which replica runs where is open.
struct Skeleton {
  struct Stage {
    int first_layer = 0;
    int end_layer = 0;
    int mode = 0;
  };
  std::vector<Stage> stages;  // first to last
  // No plan of this form is faster or cheaper; exact when all modes are pure (and the model is a sum).
  double iteration_s = 0;
  double usd = 0;
};

class BoundTables;

struct SkeletonProblem {
  ModeCosts& costs;
  const std::vector<ResourceLimit>& limits;
  int replicas = 1;
  double microbatches = 1;  // per pipeline, of the busiest
  double overhead_s = 0;
  Goal goal;
  bool dominance = true;
  bool pure_dominance = false;  // only labels of pure stages dominate: keeps every way to realize a skeleton
  bool bounding = true;
  int max_stages = 1 << 20;
  size_t beam = 0;  // follow only so many labels of a layer and leading mode: quick, not complete; 0: all
  size_t max_labels = 1000000;
  BoundTables* tables = nullptr;  // of the same costs and limits, where several problems share them
};

struct SkeletonOutcome {
  bool complete = true;  // false: stopped by time or by max_labels
  int64_t labels = 0;
  bool out_of_memory = false;  // some stage was left out for memory
  bool over_budget = false;
  bool too_slow = false;
};

// Calls `found` for every complete skeleton that can meet the limits and may be better than `threshold()` at
// that moment; `threshold` is what the caller would still accept (it usually falls as skeletons are found).
// `expired` is polled.
SkeletonOutcome search_skeletons(const SkeletonProblem& problem, const std::function<double()>& threshold,
                                 const std::function<void(const Skeleton&)>& found,
                                 const std::function<bool()>& expired);

// No skeleton is faster (cheaper) than this; infinite when none can be accepted.
double least_skeleton_value(const SkeletonProblem& problem, double threshold);
// Might there be one below the threshold? Quicker than to say of what value.
bool skeletons_possible(const SkeletonProblem& problem, double threshold);

}  // namespace sailor
