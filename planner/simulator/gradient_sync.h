// Summing gradients over the pipelines by rings: how long that takes under a framework's style, and what the
// bytes cost between zones. Pure.
#pragma once

#include <vector>

#include "planner/simulator/plan_classes.h"

namespace sailor::native {

struct SyncTimes {
  double reduce_s = 0;  // before the optimizer
  double gather_s = 0;  // after it: sharded optimizers hand out what they updated
};

// The times of every group of `groups` under the context's framework; zero for one pipeline.
std::vector<SyncTimes> sync_times(const CompactPlan& plan, const PlanClasses& classes,
                                  const std::vector<LayerGroup>& groups, StageKinds& kinds);

// Adds what the bytes that the sums move between zones take.
void add_sync_traffic(const CompactPlan& plan, const PlanClasses& classes,
                      const std::vector<LayerGroup>& groups, StageKinds& kinds, PerExpense<Spent>& spent);

}  // namespace sailor::native
