// Tables of the costs of stages in placement classes at one microbatch size: the lower bounds that the
// pipeline template search adds up. Exact for pure placement classes. Filled on demand, so not thread-safe.
#pragma once

#include <cstdint>
#include <vector>

#include "planner/search/costs/resource_limits.h"

namespace sailor {

class ClassCosts {
 public:
  ClassCosts(const StageCosts& costs, const Resources& resources, std::vector<PlacementClass> classes);

  const StageCosts& stage() const { return costs_; }
  const Resources& resources() const { return resources_; }
  const std::vector<PlacementClass>& classes() const { return classes_; }
  int size() const { return static_cast<int>(classes_.size()); }

  double compute_s(int placement, int first, int end) const {
    return costs_.compute_s(classes_[placement].slowest(), first, end);
  }
  double update_s(int placement, int first) const {
    return costs_.update_s(classes_[placement].slowest(), first);
  }
  // A lower bound on the slowest message between two replicas over the boundary before `layer`; infinite if
  // no link is known.
  double activation_s(int upstream, int downstream, int layer) const {
    return activation_s_[message(upstream, downstream, layer)];
  }
  double gradient_s(int upstream, int downstream, int layer) const {
    return gradient_s_[message(upstream, downstream, layer)];
  }
  // A stage's cheapest message to any next, from any previous stage.
  double least_activation_s(int placement) const { return least_activation_s_[placement]; }
  double least_gradient_s(int placement) const { return least_gradient_s_[placement]; }
  // A lower bound on both messages of one replica and microbatch.
  double message_charge(int upstream, int downstream, int layer);
  // A lower bound on the slowest pair of neighbours in the ring: replicas that no zone can hold alone meet
  // across zones.
  double sync_s(int placement, int first, int end, int replicas) const;
  // The first placement class whose stages reduce gradients in the same time as this one's.
  int sync_like(int placement) const { return sync_like_[placement]; }

  // The first layer of the longest stage that ends at `end` and fits a group's memory with `in_flight`
  // microbatches; `end` if not even one layer fits.
  int lowest_first(int group_option, int end, int in_flight) {
    const int16_t known = lowest_[group_option][in_flight * (costs_.layers() + 1) + end];
    return known >= 0 ? known : find_lowest_first(group_option, end, in_flight);
  }
  // By end: the first layer of the longest stage that takes at most this long, with its cheapest messages;
  // `end` if there is none. The first stage of all sends no gradients. Without `behind` the stage is the last
  // one and ends at the last layer, and only that entry is set.
  void find_lowest_in_time(int placement, bool behind, double longest_s, int16_t* lowest) const;
  // Stages of one placement class and end in which the same groups are fast enough: first layer from `lowest`
  // to `highest`.
  struct Segment {
    int lowest = 0, highest = 0;
    uint32_t groups = 0;
  };
  const std::vector<Segment>& segments(int placement, int end) const {
    return segments_[static_cast<size_t>(placement) * (costs_.layers() + 1) + end];
  }

  // The possible groups of a placement class in a stage: bit g for groups[g]. 0 if the slowest does not fit,
  // or no group has the smallest TP degree.
  uint32_t allowed(int placement, int first, int end, int in_flight);
  // A lower bound on the use of a limit, and on the cost, of one replica with these groups.
  double least_weight(int placement, uint32_t groups, const ResourceLimit& limit) const;
  double least_charge_per_s(int placement, uint32_t groups) const;
  double least_work_charge(int placement, uint32_t groups, int first, int end) const;

 private:
  template <typename Weight>
  double least_of_options(int placement, uint32_t groups, Weight weight) const;
  void tabulate_messages();
  size_t message(int upstream, int downstream, int layer) const {
    return (static_cast<size_t>(upstream) * classes_.size() + downstream) * boundary_kinds_ +
           boundary_kind_[layer];
  }
  uint32_t fast_enough(int placement, int first, int end) const;
  int find_lowest_first(int option, int end, int in_flight);
  int first_that_syncs_alike(int placement) const;
  std::vector<std::pair<int, int>> over_distinct_links(const std::vector<std::pair<int, int>>& pairs) const;
  int most_in_a_zone(const PlacementClass& placement) const;

  const StageCosts& costs_;
  const Resources& resources_;
  std::vector<PlacementClass> classes_;
  std::vector<size_t> boundary_kind_;  // by layer: boundaries with equal messages have equal kinds
  size_t boundary_kinds_ = 0;          // number of kinds
  std::vector<double> activation_s_, gradient_s_;              // [upstream][downstream][boundary kind]
  std::vector<double> message_charge_;                         // the same; negative: not computed yet
  std::vector<double> least_activation_s_, least_gradient_s_;  // by placement class
  std::vector<uint32_t> fast_enough_;                          // [class][end][first]
  std::vector<std::vector<Segment>> segments_;                 // [class][end], ascending by length
  std::vector<std::vector<std::pair<int, int>>>
      neighbours_;  // by placement class: pairs of options that gradient reduction may cross
  std::vector<std::vector<std::pair<int, int>>>
      across_zones_;                          // by placement class: pairs of options in two zones
  std::vector<int> most_in_a_zone_;           // by placement class: replicas
  std::vector<int> sync_like_;                // by placement class
  std::vector<std::vector<int16_t>> lowest_;  // [option], [in_flight][end]; -1 = not computed yet
};

}  // namespace sailor
