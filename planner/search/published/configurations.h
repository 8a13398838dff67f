// What the search enumerates outside: one microbatch size and one D at a time, with bounds that hold for
// every plan of it, mixed stages included.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "planner/search/costs/stage_costs.h"
#include "planner/search/problem/goal.h"

namespace sailor {

struct Configuration {
  const StageCosts* costs;
  int replicas;
  double rounds;  // microbatches of the busiest pipeline
  double bound_s;
  double bound_charge;

  double bound(Objective objective) const { return objective.expense() ? bound_charge : bound_s; }
};

// Costs by microbatch size.
using CostTables = std::vector<std::unique_ptr<StageCosts>>;
CostTables cost_tables(const PlanningContext& context, const Resources& resources);

struct Configurations {
  std::vector<Configuration> list;       // those that the limits allow, by table and D
  double least_s = 0, least_charge = 0;  // the smallest bounds; infinite when there is none
};

// `all_replicas`: every D, not only the smallest of those with equally many rounds, which has less to
// synchronise and needs fewer GPUs. Counts in `rejected` what the limits rule out. `tables` outlive
// the result.
Configurations list_configurations(const PlanningContext& context, const Resources& resources,
                                   const CostTables& tables, const Goal& goal, bool all_replicas,
                                   std::map<std::string, int64_t>& rejected);

}  // namespace sailor
