// The subproblems of the branch and bound (branch_and_bound.h): pipelines of one configuration whose slowest
// stage, longest sum of gradients, and regions are within limits. Pure.
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
  uint64_t regions = ~uint64_t{0};  // that stages may be in
  uint64_t visited = 0;             // those that some stage is in
  int least_regions = 1;            // with a stage
  double crossings_s = 0;           // that the number of regions adds to the sum of stages
  SupplyPrices prices;
  int64_t number = 0;

  bool operator<(const Box& other) const {
    return bound_s != other.bound_s ? bound_s < other.bound_s : number < other.number;
  }
};

// Boxes that hold together what this one does: by the regions that stages are in; where these are known, by
// the slowest stage or the sum of gradients, which matter `rounds` times and once. None where that would say
// little more.
std::vector<Box> branches(const Box& box, double rounds, const PricedCuts& cuts);

}  // namespace sailor
