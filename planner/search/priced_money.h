// What stages of several GPU types cost at least, knowing that the cheap type does not suffice for all.
//
// A mixed stage may pay for its cheapest replicas only. When every GPU of one supply (a type in a region)
// costs y more per second, and y x supply is credited, no plan pays more than it does: a bound by Lagrangian
// relaxation, in which stages no longer count on the same cheap GPUs. Only those y matter at which some stage
// is indifferent between two of its groups.
#pragma once

#include <vector>

#include "planner/search/resource_limits.h"

namespace sailor {

// At most `most` of them, in the form of limits that bind nothing and have a credit; weights are USD per
// second. None where no stage has a choice.
std::vector<ResourceLimit> priced_money(const Resources& resources, const std::vector<StageMode>& modes,
                                        size_t most);

}  // namespace sailor
