// The subproblems of branch_and_bound.h: pipelines of one configuration whose slowest stage, longest gradient
// reduction, and regions are within limits. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "planner/search/branch_and_bound/supply_prices.h"

namespace sailor {

struct Box {
  size_t configuration = 0;
  double shortest_s = 0, longest_s = 0;  // of the slowest stage
  double least_sync_s = 0, most_sync_s = 0;
  double bound_s = 0;
  uint64_t regions = ~uint64_t{0};  // where stages may be
  uint64_t visited = 0;             // where some stage must be
  int least_regions = 1;            // minimum number of regions with a stage
  double crossings_s = 0;           // added to the sum of stages by the number of regions
  SupplyPrices prices;
  int64_t number = 0;

  bool operator<(const Box& other) const {
    return bound_s != other.bound_s ? bound_s < other.bound_s : number < other.number;
  }
};

// Boxes that together cover this one: split by the regions of stages; when these are known, by the slowest
// stage or the gradient reduction, which count `rounds` times and once. Empty if a split would hardly improve
// the bound.
std::vector<Box> branches(const Box& box, double rounds, const PricedCuts& cuts);

}  // namespace sailor
