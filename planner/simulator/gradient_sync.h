// Gradient reduction over the pipelines: its time along rings under a framework's style, and the cost of
// traffic between zones, along rings or over a mesh. Pure.
#pragma once

#include <vector>

#include "planner/simulator/plan_classes.h"

namespace sailor::native {

struct SyncTimes {
  double reduce_s = 0;  // before the optimizer, or, with sharded gradients, of every microbatch
  double last_s = 0;    // of that, the bucket of the lowest layers, which no backward hides
  // Sharded optimizers gather the updated weights after the step; sharded parameters are gathered for every
  // forward and backward instead.
  double gather_s = 0;
  // Hybrid ZeRO that shards gradients: the sums over the copies of states after all rounds. Otherwise they
  // are part of reduce_s.
  double copies_s = 0;
};

// The times of every group of `groups` under the context's framework; zero for one pipeline.
std::vector<SyncTimes> sync_times(const CompactPlan& plan, const PlanClasses& classes,
                                  const std::vector<LayerGroup>& groups, StageKinds& kinds);

// Adds the expenses of gradient traffic between zones: of all bytes that sums and gathers send there.
void add_sync_traffic(const CompactPlan& plan, const PlanClasses& classes,
                      const std::vector<LayerGroup>& groups, StageKinds& kinds, PerExpense<Spent>& spent);

}  // namespace sailor::native
