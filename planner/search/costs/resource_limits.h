// Linear limits on what the stages of a plan use together: the form in which a search over placement classes
// knows the cluster. Immutable value type.
#pragma once

#include <optional>
#include <vector>

#include "planner/search/costs/placement_classes.h"

namespace sailor {

// A linear limit on what all stages together use: every feasible plan satisfies it.
struct ResourceLimit {
  std::vector<double> weight;  // by option: of one replica
  double capacity = 0;
  // Of what binds nothing but tells what a plan costs (money_prices() below): charge per second, at least the
  // weights of all replicas less this.
  std::optional<double> credit_per_s;
};

// The limits that placement classes are checked against: what Resources counts (of a single zone only with
// `zones_alone`: they bind nothing but placement classes that name the zone), sums of it over the zones of a
// region, and weighted sums over the types of a region. Where a replica may be of several types it counts
// with the least weight; with the right weights (resource_limits.cpp) these limits are then not only
// necessary but sufficient for fractional replicas, as far as `most` limits allow.
std::vector<ResourceLimit> resource_limits(const StageCosts& costs, const Resources& resources,
                                           const std::vector<PlacementClass>& classes, bool zones_alone,
                                           size_t most);

// What stages of several GPU types cost at least, knowing that the cheap type does not suffice for all.
//
// A mixed stage may pay for its cheapest replicas only. When every GPU of one supply (a type in a region)
// costs y more per second, and y x supply is credited, no plan pays more than it does: a bound by Lagrangian
// relaxation, in which stages no longer count on the same cheap GPUs. Only those y matter at which some stage
// is indifferent between two of its groups.
//
// At most `most` of them, in the form of limits that bind nothing and have a credit; weights are charges
// per second. None where no stage has a choice.
std::vector<ResourceLimit> money_prices(const Resources& resources,
                                        const std::vector<PlacementClass>& classes, size_t most);

}  // namespace sailor
