// Prices: what GPUs and traffic cost. Pure.
#pragma once

#include <string>

#include "planner/plan/plan.h"
#include "planner/simulator/simulate.h"

namespace sailor {

// One GPU for one hour: the snapshot's price for that zone, else the catalog's.
double usd_per_gpu_hour(const PlanningContext& context, const std::string& gpu_type, const std::string& zone);
// All GPUs of a plan for one second.
double usd_per_s(const PlanningContext& context, const Plan& plan);
// One GB (1e9 bytes) from one zone to another; pairs that the snapshot does not name cost nothing.
double egress_usd_per_gb(const Snapshot& snapshot, const std::string& from_zone, const std::string& to_zone);

}  // namespace sailor
