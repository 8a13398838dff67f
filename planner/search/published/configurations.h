// The outer enumeration of the search: one microbatch size and one D at a time, with bounds on all its plans,
// mixed stages included.
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
  std::vector<Configuration> list;       // those within the limits, by table and D
  double least_s = 0, least_charge = 0;  // the smallest bounds; infinite if there is none
};

// `all_replicas`: every D, not only the smallest of those with equal rounds, which has less gradient sync and
// needs fewer GPUs. Counts those outside the limits in `rejected`. `tables` must outlive the result.
Configurations list_configurations(const PlanningContext& context, const Resources& resources,
                                   const CostTables& tables, const Goal& goal, bool all_replicas,
                                   std::map<std::string, int64_t>& rejected);

}  // namespace sailor
