// The plans that no other plan beats in both time and cost. Sorted by time; cost falls strictly. Not
// thread-safe.
#pragma once

#include <optional>
#include <vector>

#include "tests/oracle/problem.h"

namespace sailor::oracle {

struct FrontPoint {
  double iteration_s = 0;
  double usd = 0;
  GridPlan plan;
};

class ParetoFront {
 public:
  // Is there a plan that is at least as fast and as cheap? Differences up to one part in 1e12 are ignored:
  // another order of summation causes as much.
  bool covers(double iteration_s, double usd) const;
  void add(FrontPoint point);  // drops covered points; requires that the front does not cover it

  bool empty() const { return points_.empty(); }
  const std::vector<FrontPoint>& points() const { return points_; }
  // Requires a front that is not empty.
  const FrontPoint& fastest() const { return points_.front(); }
  const FrontPoint& cheapest() const { return points_.back(); }
  // The fastest plan for at most that much, the cheapest that is at least that fast; nullptr if there is
  // none.
  const FrontPoint* fastest_within(double usd) const;
  const FrontPoint* cheapest_within(double iteration_s) const;

 private:
  std::vector<FrontPoint> points_;
};

}  // namespace sailor::oracle
