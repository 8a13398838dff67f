// Improves the assignment of stages to nodes of a pool by exchanging GPU groups between nodes. On nodes with
// few or different GPUs this finds placements that the block of a template (plan_template.h) cannot express.
#pragma once

#include <cstdint>

#include "planner/search/native/scorer.h"

namespace sailor::native {

struct PlacementOptions {
  size_t most_groups = 24;    // GPU groups; larger plans are not changed
  int64_t steps = 1'500'000;  // of the simulator, per plan
};

// Exchanges as long as the plan improves by the goal; never violates a limit of the user.
void improve_placement(const Space& space, IterationModel& model, const Goal& goal, CompactPlan& plan,
                       const PlacementOptions& options);

// Vacates nodes whose GPU groups have room on the other nodes of the plan, where the plan is as good by the
// goal, to 0.01 %: what it does not use is free for others, and is not paid.
void use_fewer_nodes(const Space& space, IterationModel& model, const Goal& goal, CompactPlan& plan);

}  // namespace sailor::native
