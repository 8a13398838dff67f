// Where each second of a predicted iteration goes: on the GPUs that the others wait for. Pure.
#pragma once

#include <string>

#include "planner/plan/plan.h"
#include "planner/simulator/prediction.h"
#include "planner/simulator/simulate.h"
#include "planner/spec/framework_style.h"

namespace sailor {

// Of the pipeline whose last backward ends last, seen from its busiest stage. The parts add up to the
// iteration.
struct IterationShares {
  int pipeline = 0;
  int stage = 0;         // group of GPUs, where the plan is interleaved
  double compute_s = 0;  // forwards and backwards of that stage
  double bubble_s = 0;   // its waiting for other stages' computation: pipeline fill and drain, unequal stages
  double p2p_s = 0;      // what the pipeline would be faster if messages between stages took no time
  double sync_s = 0;     // gradient sums that are not hidden
  double update_s = 0;
  double overhead_s = 0;

  double total_s() const { return compute_s + bubble_s + p2p_s + sync_s + update_s + overhead_s; }
  // The largest of compute, bubble, p2p and sync, by that name, and its part of the iteration.
  std::string bottleneck() const;
  double bottleneck_part() const;
};

// `prediction` is what the cost model says of the plan under `style`. Costs two timelines per kind of
// pipeline, without events.
IterationShares iteration_shares(const FrameworkStyle& style, const Plan& plan, const Prediction& prediction,
                                 CostModel model = CostModel::native);

}  // namespace sailor
