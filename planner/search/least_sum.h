// What the stages before a partial pipeline add at least to the sum of all stages' times, given the GPUs that
// are left: TP degrees that make a stage short use many.
//
// Lagrangian relaxation of one limit at a time: min over stages (time + price x use) - price x left is a
// bound for every price >= 0; a few prices are tried.
#pragma once

#include <vector>

#include "planner/search/coverage.h"

namespace sailor {

class LeastSum {
 public:
  LeastSum(const ModeCosts& costs, StageUses& uses, const std::vector<double>& capacity);  // by limit

  // For stages that are no longer than the coverage's bottleneck.
  void update(const Coverage& coverage);
  // Of stages that hold layers [0, end) before others, with this much left of every limit.
  double seconds(int end, const double* left) const;  // 0 before the first update()

 private:
  struct Price {
    size_t limit = 0;
    double per_unit = 0;
    std::vector<double> least;  // by end: min over stages of time + price x use
  };
  void fill(Price& price, const Coverage& coverage) const;

  const ModeCosts& costs_;
  StageUses& uses_;
  std::vector<Price> prices_;
};

}  // namespace sailor
