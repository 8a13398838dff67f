// How long stages sum gradients between D replicas, by mode and layers: a table, because the search asks far
// more often than there are different answers (stages with equally many parameters, modes over the same
// links). Rows are filled when they are first asked for, so one thread at a time.
#pragma once

#include <vector>

#include "planner/search/mode_costs.h"

namespace sailor {

class StageSync {
 public:
  // `costs` must outlive this.
  StageSync(const ModeCosts& costs, int replicas);

  double seconds(int mode, int first, int end) const { return row(mode).seconds[at(first, end)]; }
  // The same for this stage or any that holds more parameters, at least: falls when layers are taken away,
  // which the times themselves need not do.
  double this_or_longer_s(int mode, int first, int end) const { return row(mode).at_least[at(first, end)]; }
  // Stages of the size classes below this, and only they, have a this_or_longer_s() of at most `most_s`.
  int size_classes_within(int mode, double most_s) const;

 private:
  // By size class; empty until asked for.
  struct Row {
    std::vector<double> seconds, at_least;
  };

  const Row& row(int mode) const {
    const Row& row = rows_[costs_.sync_like(mode)];
    return row.seconds.empty() ? fill(costs_.sync_like(mode)) : row;
  }
  size_t at(int first, int end) const { return costs_.stage().size_class(first, end); }
  const Row& fill(int mode) const;

  const ModeCosts& costs_;
  const int replicas_;
  mutable std::vector<Row> rows_;  // by the first mode that sums alike
};

}  // namespace sailor
