// Breakdown of a predicted iteration on the critical GPUs, which the others wait for. Pure.
#pragma once

#include <string>

#include "planner/plan/plan.h"
#include "planner/simulator/prediction.h"
#include "planner/simulator/simulate.h"
#include "planner/spec/framework_style.h"

namespace sailor {

// For the pipeline whose last backward ends last, and its busiest stage. The parts add up to the iteration.
struct IterationShares {
  int pipeline = 0;
  int stage = 0;         // GPU group if the plan is interleaved
  double compute_s = 0;  // forwards and backwards of that stage
  double bubble_s = 0;   // waiting for other stages' computation: pipeline fill and drain, unequal stages
  double p2p_s = 0;      // time saved if messages between stages took no time
  double sync_s = 0;     // gradient sync that is not overlapped
  double update_s = 0;
  double overhead_s = 0;

  double total_s() const { return compute_s + bubble_s + p2p_s + sync_s + update_s + overhead_s; }
  // The largest of compute, bubble, p2p and sync, by name, and its fraction of the iteration.
  std::string bottleneck() const;
  double bottleneck_part() const;
};

// `prediction` is the cost model's prediction of the plan under `style`. Costs two timelines per kind of
// pipeline, without events.
IterationShares iteration_shares(const FrameworkStyle& style, const Plan& plan, const Prediction& prediction,
                                 CostModel model = CostModel::native);

}  // namespace sailor
