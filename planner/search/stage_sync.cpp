#include "planner/search/stage_sync.h"

#include <algorithm>

namespace sailor {

StageSync::StageSync(const ModeCosts& costs, int replicas) : costs_(costs), row_(costs.modes().size()) {
  const auto& stages = costs.stage().size_class_stages();
  for (int mode = 0; mode < costs.size(); ++mode) {
    if (costs.sync_like(mode) != mode) {
      row_[mode] = row_[costs.sync_like(mode)];
      continue;
    }
    row_[mode] = static_cast<int>(seconds_.size());
    for (const auto& [first, end] : stages) seconds_.push_back(costs.sync_s(mode, first, end, replicas));
  }
  // Classes stand in the order of sizes.
  at_least_ = seconds_;
  for (size_t i = at_least_.size(); i-- > 0;)
    if ((i + 1) % stages.size() != 0) at_least_[i] = std::min(at_least_[i], at_least_[i + 1]);
}

}  // namespace sailor
