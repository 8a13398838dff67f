// Linear limits on the resources that the stages of a plan use together: the view of the cluster of a search
// over placement classes. Immutable value type.
#pragma once

#include <optional>
#include <vector>

#include "planner/search/costs/placement_classes.h"

namespace sailor {

// A linear limit on the total use of all stages, which every feasible plan satisfies.
struct ResourceLimit {
  std::vector<double> weight;  // by option: of one replica
  double capacity = 0;
  // For limits that only give a lower bound on cost (money_prices() below): charge per second is at least the
  // weights of all replicas less this credit.
  std::optional<double> credit_per_s;
};

// The limits that placement classes are checked against: the counters of Resources (of a single zone only
// with `zones_alone`: they only restrict placement classes that name the zone), their sums over the zones of
// a region, and weighted sums over the types of a region. A replica that may be of several types counts with
// the smallest weight. With the right weights (resource_limits.cpp) these limits are not only necessary but
// sufficient for fractional replicas, as far as `most` limits allow.
std::vector<ResourceLimit> resource_limits(const StageCosts& costs, const Resources& resources,
                                           const std::vector<PlacementClass>& classes, bool zones_alone,
                                           size_t most);

// Lower bounds on the cost of stages with several GPU types, given that the cheap type does not suffice for
// all.
//
// A mixed stage may count only its cheapest replicas. If every GPU of one supply (a type in a region) costs y
// more per second, and y x supply is credited, no plan pays more than its cost: a Lagrangian relaxation in
// which stages no longer count on the same cheap GPUs. Only those y matter at which some stage is indifferent
// between two of its groups.
//
// At most `most` of them, as limits that restrict nothing and have a credit; weights are charges per second.
// Empty if no stage has a choice.
std::vector<ResourceLimit> money_prices(const Resources& resources,
                                        const std::vector<PlacementClass>& classes, size_t most);

}  // namespace sailor
