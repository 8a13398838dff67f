// Cuts of the layers into stages when every GPU has a price instead of a supply: the relaxation that bounds
// and leads the search of large clusters (branch_and_bound.h).
//
// With stages no longer than a given time, and sums of gradients no longer than another, what is left of an
// iteration is a sum over stages. With prices y >= 0 per GPU of every supply (one type in one region)
//     min over cuts (sum of stages and messages + prices) - sum over supplies of price x GPUs
// is a lower bound of that sum for every cut that the supplies suffice for; the best prices make it as good
// as replicas that can be divided. A mixed stage pays the cheapest of what may serve, which is the dual of
// sharing it out, so mixes need no limits of their own. The minimum is a shortest path over (layers left,
// stages behind). Messages between regions count as the fastest there are; who knows that stages are in
// several regions adds crossing_s() for each but one. Not thread-safe.
#pragma once

#include <cstdint>
#include <vector>

#include "planner/search/costs/stage_tables.h"

namespace sailor {

class PricedCuts {
 public:
  static constexpr int kMostRegions = 64;  // what is more counts as the last of them
  struct Stage {
    int first_layer = 0, end_layer = 0, placement = 0;
    uint32_t groups = 0;  // that may serve
  };

  PricedCuts(ClassCosts& costs, const StageSync& sync, int replicas);

  const std::vector<Supply>& supplies() const { return resources_.supplies; }
  int region_of_supply(size_t supply) const { return region_of_supply_[supply]; }
  int region_of(int placement) const { return region_of_class_[placement]; }

  // Stages take, messages included, and sum gradients for, at most this long; and are in these regions, bit r
  // for region r.
  void set_caps(double longest_s, double sync_s, uint64_t regions);
  uint64_t all_regions() const { return ~uint64_t{0} >> (kMostRegions - regions_); }
  // What messages between two of these regions take more than those that solve() counts, at least; and the
  // longer of the two stages between which they go.
  double crossing_s(uint64_t regions) const { return least_of_pairs(crossing_s_, regions); }
  double crossing_stage_s(uint64_t regions) const { return least_of_pairs(crossing_stage_s_, regions); }
  // The least sum of stages, messages and prices; infinite when layers cannot be covered. USD stand nowhere:
  // prices are seconds per GPU, by supply.
  double solve(const std::vector<double>& prices);
  // Of layers [0, end) before `behind` stages; after solve().
  double rest(int end, int behind);
  // The stages that solve() found, last one first, and what they take of every supply.
  std::vector<Stage> path();
  std::vector<double> use_of(const std::vector<Stage>& path) const;
  // The first layer of the longest stage that is short enough; `end` when there is none.
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
  // A stage's messages, in and out, added up as the cost model counts them, at least.
  double messages_s(int placement, int end, int behind, bool first) const;
  void find_rest(int end, int behind);
  // Of one replica of the group; and the group that has the least price of those that may serve.
  double price_of(const PlacementClass::Group& group) const {
    return prices_[resources_.options[group.option].supply] * group.tp;
  }
  const PlacementClass::Group& cheapest(int placement, uint32_t groups) const;

  ClassCosts& costs_;
  const Resources& resources_;
  const StageSync& sync_;
  const int replicas_, layers_;
  int regions_ = 0;
  int most_behind_;
  std::vector<int> region_of_supply_, region_of_class_;
  std::vector<double> activation_s_, gradient_s_;      // [class][layer], at least
  std::vector<double> crossing_s_, crossing_stage_s_;  // [region][region of the next stage], at least
  std::vector<int16_t> lowest_;                        // [behind][class][end]
  std::vector<int> coarse_;                            // placement classes that refine no other
  std::vector<int> usable_;                            // those of them in regions that stages may be in
  std::vector<double> prices_;                         // by supply
  std::vector<std::vector<double>> segment_price_;     // [class, end][segment]
  std::vector<double> rest_;                           // [behind][end]
  std::vector<Step> step_;
  std::vector<char> known_;  // [behind][end]
};

}  // namespace sailor
