// Linear limits on what the stages of a plan use together: the form in which a search over modes knows the
// cluster. Immutable value type.
#pragma once

#include <optional>
#include <vector>

#include "planner/search/stage_modes.h"

namespace sailor {

// A linear limit on what all stages together use: every feasible plan satisfies it.
struct ResourceLimit {
  std::vector<double> weight;  // by option: of one replica
  double capacity = 0;
  // Of what binds nothing but tells what a plan costs (priced_money.h): USD per second, at least the weights
  // of all replicas less this.
  std::optional<double> credit_usd_per_s;
};

// The limits that modes are held against: what Resources counts (of a single zone only with `zones_alone`:
// they bind nothing but modes that name the zone), sums of it over the zones of a region, and weighted sums
// over the types of a region. Where a replica may be of several types it counts with the least weight; with
// the right weights (resource_limits.cpp) these limits are then not only necessary but sufficient for
// fractional replicas, as far as `most` limits allow.
std::vector<ResourceLimit> resource_limits(const StageCosts& costs, const Resources& resources,
                                           const std::vector<StageMode>& modes, bool zones_alone,
                                           size_t most);

}  // namespace sailor
