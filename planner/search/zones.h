// From a cut found with the zones of each region taken as one to a plan over the real zones: pipelines stay
// inside one zone per region as far as GPUs go, zones follow one another in the order that sums gradients
// fastest. Pure, deterministic.
#pragma once

#include <optional>

#include "planner/search/cut_search.h"

namespace sailor {

// Nothing when the real zones cannot hold the cut. `merged` is what the cut's options refer to.
std::optional<Plan> plan_over_zones(const PlanningContext& context, const Resources& merged,
                                    const Resources& real, const Cut& cut, int microbatch, int replicas);

}  // namespace sailor
