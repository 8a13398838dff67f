// Summing gradients over the pipelines: which layers are summed together, by which ring, and how long that
// takes under a framework's style. Pure.
#pragma once

#include <vector>

#include "planner/profile/collectives.h"
#include "planner/simulator/lookup.h"

namespace sailor::native {

// Consecutive layers that the same stages hold, one per pipeline: they are summed together.
struct LayerGroup {
  int first_layer = 0;
  int end_layer = 0;
  std::vector<int> stage_of;  // by pipeline, index of the stage (or chunk) within it
};

std::vector<LayerGroup> layer_groups(const Plan& plan);

struct SyncTimes {
  double reduce_s = 0;  // before the optimizer
  double gather_s = 0;  // after it: sharded optimizers hand out what they updated
};

// The times of every group of `groups` under the context's framework; zero for one pipeline.
std::vector<SyncTimes> sync_times(const PlanningContext& context, const Plan& plan,
                                  const std::vector<LayerGroup>& groups);

// USD for the bytes that the sums move between zones.
double sync_usd(const PlanningContext& context, const Plan& plan, const std::vector<LayerGroup>& groups);

}  // namespace sailor::native
