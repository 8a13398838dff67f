#include "planner/search/branch_and_bound/box.h"

#include <algorithm>
#include <array>
#include <bit>

namespace sailor {
namespace {

constexpr double kNarrow = 5e-3;  // relative: halves of such a box say little more

// Of the regions that stages may but need not be in, the one that is used most.
uint64_t open_region_used_most(const Box& box, const PricedCuts& cuts) {
  std::array<double, PricedCuts::kMostRegions> gpus{};
  for (size_t s = 0; s < box.prices.use.size(); ++s)
    gpus[cuts.region_of_supply(s)] += box.prices.use[s] * cuts.supplies()[s].gpus;
  uint64_t chosen = 0;
  double most = -1;
  for (size_t r = 0; r < gpus.size(); ++r)
    if (const uint64_t bit = uint64_t{1} << r; (box.regions & ~box.visited & bit) && gpus[r] > most) {
      most = gpus[r];
      chosen = bit;
    }
  return chosen;
}

// Without the region; with nothing else; with it and others.
std::vector<Box> by_region(const Box& box, uint64_t region) {
  std::vector<Box> parts;
  if (std::popcount(box.regions & ~region) >= box.least_regions) {
    parts.push_back(box);
    parts.back().regions &= ~region;
  }
  if (box.visited == 0) {
    parts.push_back(box);
    parts.back().regions = parts.back().visited = region;
  }
  parts.push_back(box);
  parts.back().visited |= region;
  parts.back().least_regions = std::max(2, std::popcount(parts.back().visited));
  return parts;
}

}  // namespace

std::vector<Box> branches(const Box& box, double rounds, const PricedCuts& cuts) {
  if (box.regions != box.visited && std::popcount(box.regions) > 1)
    return by_region(box, open_region_used_most(box, cuts));
  const double stage_width_s = rounds * (box.longest_s - box.shortest_s);
  const double sync_width_s = box.most_sync_s - box.least_sync_s;
  if (std::max(stage_width_s, sync_width_s) <= kNarrow * box.bound_s) return {};
  std::vector<Box> halves{box, box};
  if (stage_width_s >= sync_width_s)
    halves[0].longest_s = halves[1].shortest_s = (box.shortest_s + box.longest_s) / 2;
  else
    halves[0].most_sync_s = halves[1].least_sync_s = (box.least_sync_s + box.most_sync_s) / 2;
  return halves;
}

}  // namespace sailor
