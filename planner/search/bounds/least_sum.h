// A lower bound on the sum of times of the stages before a partial pipeline, given the remaining GPUs: TP
// degrees that make a stage short need many.
//
// Lagrangian relaxation of one limit at a time: min over stages (time + price x use) - price x remaining is a
// bound for every price >= 0; a few prices are tried.
#pragma once

#include <vector>

#include "planner/search/bounds/suffix_resource_bound.h"

namespace sailor {

class LeastSum {
 public:
  // Capacities by limit; prices are put on the first `most_limits` of them.
  LeastSum(const ClassCosts& costs, const StageUses& uses, const std::vector<double>& capacity,
           size_t most_limits);

  // For stages within the limits of `suffix`.
  void update(const SuffixResourceBound& suffix);
  // Stages that hold layers [0, end), before others if there are more layers, with these remaining resources.
  // 0 before the first update().
  double seconds(int end, const double* left) const;  // by limit

 private:
  struct Price {
    size_t limit = 0;
    double per_unit = 0;
  };

  const ClassCosts& costs_;
  const StageUses& uses_;
  std::vector<Price> prices_;
  std::vector<double> least_;  // [end][price]: min over stages of time + price x use
};

}  // namespace sailor
