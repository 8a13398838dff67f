// Which of a pool's nodes hold which stages, improved by exchanging groups of GPUs between nodes: what the
// one number of a template (plan_template.h) cannot say, on nodes with few GPUs or unlike ones.
#pragma once

#include <cstdint>

#include "planner/search/native/scorer.h"

namespace sailor::native {

struct PlacementOptions {
  size_t most_groups = 24;    // of GPUs: larger plans are left as they are
  int64_t steps = 1'500'000;  // of the simulator, for one plan
};

// Exchanges as long as the plan gets better, by the goal; no limit of the user is violated for it.
void improve_placement(const Space& space, IterationModel& model, const Goal& goal, CompactPlan& plan,
                       const PlacementOptions& options);

}  // namespace sailor::native
