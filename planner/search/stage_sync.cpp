#include "planner/search/stage_sync.h"

#include <algorithm>

namespace sailor {

StageSync::StageSync(const ModeCosts& costs, int replicas)
    : costs_(costs), replicas_(replicas), rows_(costs.modes().size()) {}

const StageSync::Row& StageSync::fill(int mode) const {
  Row& row = rows_[mode];
  for (const auto& [first, end] : costs_.stage().size_class_stages())
    row.seconds.push_back(costs_.sync_s(mode, first, end, replicas_));
  // Classes stand in the order of sizes.
  row.at_least = row.seconds;
  for (size_t i = row.at_least.size() - 1; i-- > 0;)
    row.at_least[i] = std::min(row.at_least[i], row.at_least[i + 1]);
  return row;
}

int StageSync::size_classes_within(int mode, double most_s) const {
  const std::vector<double>& at_least = row(mode).at_least;
  return static_cast<int>(std::upper_bound(at_least.begin(), at_least.end(), most_s) - at_least.begin());
}

}  // namespace sailor
