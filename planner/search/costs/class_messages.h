// What messages between stages in given placement classes take and cost, as tables: lower bounds over the
// mixes of both stages. Boundaries with equal messages share an entry. Fills the table of costs as it is
// asked, so one thread at a time.
#pragma once

#include <vector>

#include "planner/search/costs/placement_classes.h"

namespace sailor {

class ClassMessages {
 public:
  // `costs` must outlive this.
  ClassMessages(const StageCosts& costs, const Resources& resources,
                const std::vector<PlacementClass>& classes);

  // The slowest pair of replicas over the boundary before `layer`, at least; infinite when no link is known.
  double activation_s(int upstream, int downstream, int layer) const {
    return activation_s_[at(upstream, downstream, layer)];
  }
  double gradient_s(int upstream, int downstream, int layer) const {
    return gradient_s_[at(upstream, downstream, layer)];
  }
  // A stage's cheapest message to any next, to any previous stage.
  double least_activation_s(int placement) const { return least_activation_s_[placement]; }
  double least_gradient_s(int placement) const { return least_gradient_s_[placement]; }
  double usd(int upstream, int downstream, int layer) {  // of one replica and microbatch
    if (usd_.empty()) usd_.assign(activation_s_.size(), -1);
    double& known = usd_[at(upstream, downstream, layer)];
    if (known < 0) known = least_usd(upstream, downstream, layer);
    return known;
  }

 private:
  size_t at(int upstream, int downstream, int layer) const {
    return (static_cast<size_t>(upstream) * facing_.size() + downstream) * kinds_ + kind_of_[layer];
  }
  double least_usd(int upstream, int downstream, int layer) const;

  const StageCosts& costs_;
  std::vector<std::vector<int>> facing_;                       // by placement class: all its options
  std::vector<size_t> kind_of_;                                // by layer: boundaries of equal messages
  size_t kinds_ = 0;                                           // of messages
  std::vector<double> activation_s_, gradient_s_;              // [upstream][downstream][kind]
  std::vector<double> usd_;                                    // the same; negative = not asked yet
  std::vector<double> least_activation_s_, least_gradient_s_;  // by placement class
};

}  // namespace sailor
