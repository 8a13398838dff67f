// How long stages sum gradients between D replicas, by mode and layers: a table, because the search asks far
// more often than there are different answers (stages with equally many parameters, modes over the same
// links). Immutable once built.
#pragma once

#include <vector>

#include "planner/search/mode_costs.h"

namespace sailor {

class StageSync {
 public:
  StageSync(const ModeCosts& costs, int replicas);

  double seconds(int mode, int first, int end) const { return seconds_[at(mode, first, end)]; }
  // The same for this stage or any that holds more parameters, at least: falls when layers are taken away,
  // which the times themselves need not do.
  double this_or_longer_s(int mode, int first, int end) const { return at_least_[at(mode, first, end)]; }

 private:
  size_t at(int mode, int first, int end) const {
    return static_cast<size_t>(row_[mode]) + costs_.stage().size_class(first, end);
  }

  const ModeCosts& costs_;
  std::vector<int> row_;  // by mode: where its times begin
  std::vector<double> seconds_, at_least_;
};

}  // namespace sailor
