// Layer splits if every GPU has a price instead of a limited supply: the relaxation that bounds and guides
// the search on large clusters (branch_and_bound.h).
//
// With limits on the time of stages and of gradient reductions, the rest of an iteration is a sum over
// stages. With prices y >= 0 per GPU of every supply (one type in one region)
//
//     min over cuts (sum of stages and messages + prices) - sum over supplies of price x GPUs
//
// is a lower bound on that sum for every cut within the supplies; with the best prices it is as good as with
// divisible replicas. A mixed stage pays the cheapest of its options, which is the dual of dividing it, so
// mixes need no limits of their own. The minimum is a shortest path over (layers left, stages behind).
// Messages between regions count as the fastest ones; if stages are known to be in several regions, add
// crossing_s() for each but one. Not thread-safe.
#pragma once

#include <cstdint>
#include <vector>

#include "planner/search/costs/stage_tables.h"

namespace sailor {

class PricedCuts {
 public:
  static constexpr int kMostRegions = 64;  // further regions count as the last of them
  struct Stage {
    int first_layer = 0, end_layer = 0, placement = 0;
    uint32_t groups = 0;  // possible groups
  };

  PricedCuts(ClassCosts& costs, const StageSync& sync, int replicas);

  const std::vector<Supply>& supplies() const { return resources_.supplies; }
  int region_of_supply(size_t supply) const { return region_of_supply_[supply]; }
  int region_of(int placement) const { return region_of_class_[placement]; }

  // Limits on the time of stages, messages included, and of gradient reduction; and the allowed regions, bit
  // r for region r.
  void set_caps(double longest_s, double sync_s, uint64_t regions);
  uint64_t all_regions() const { return ~uint64_t{0} >> (kMostRegions - regions_); }
  // The minimum additional time of messages between two of these regions compared with solve(); and the
  // longer of the two stages that exchange them.
  double crossing_s(uint64_t regions) const { return least_of_pairs(crossing_s_, regions); }
  double crossing_stage_s(uint64_t regions) const { return least_of_pairs(crossing_stage_s_, regions); }
  // The minimum sum of stages, messages and prices; infinite if layers cannot be covered. Prices are seconds
  // per GPU, by supply.
  double solve(const std::vector<double>& prices);
  // Of layers [0, end) before `behind` stages; after solve().
  double rest(int end, int behind);
  // The stages that solve() found, last one first, with their use of every supply.
  std::vector<Stage> path();
  std::vector<double> use_of(const std::vector<Stage>& path) const;
  // The first layer of the longest stage that is short enough; `end` if there is none.
  int lowest_in_time(int placement, int end, bool behind) const {
    return lowest_[(static_cast<size_t>(behind) * costs_.size() + placement) * (layers_ + 1) + end];
  }

 private:
  struct Step {
    int16_t first = -1, placement = -1;
    uint32_t groups = 0;
  };
  size_t state(int end, int behind) const { return static_cast<size_t>(behind) * (layers_ + 1) + end; }
  void tabulate_messages();
  double least_of_pairs(const std::vector<double>& of_pair, uint64_t regions) const;
  bool is_in(int placement, uint64_t regions) const { return regions >> region_of_class_[placement] & 1u; }
  // A lower bound on a stage's messages, in and out, added up as in the cost model.
  double messages_s(int placement, int end, int behind, bool first) const;
  void find_rest(int end, int behind);
  // Price of one replica of the group; and the possible group with the lowest price.
  double price_of(const PlacementClass::Group& group) const {
    return prices_[resources_.options[group.option].supply] * group.shape.gpus();
  }
  const PlacementClass::Group& cheapest(int placement, uint32_t groups) const;

  ClassCosts& costs_;
  const Resources& resources_;
  const StageSync& sync_;
  const int replicas_, layers_;
  int regions_ = 0;
  int most_behind_;
  std::vector<int> region_of_supply_, region_of_class_;
  std::vector<double> activation_s_, gradient_s_;      // [class][layer], lower bounds
  std::vector<double> crossing_s_, crossing_stage_s_;  // [region][region of the next stage], lower bounds
  std::vector<int16_t> lowest_;                        // [behind][class][end]
  std::vector<int> coarse_;                            // placement classes that are not refinements of others
  std::vector<int> usable_;                            // those of them in allowed regions
  std::vector<double> prices_;                         // by supply
  std::vector<std::vector<double>> segment_price_;     // [class, end][segment]
  std::vector<double> rest_;                           // [behind][end]
  std::vector<Step> step_;
  std::vector<char> known_;  // [behind][end]
};

}  // namespace sailor
