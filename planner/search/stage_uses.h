// What all replicas of a stage use of every limit, and cost per second, at least, by mode and by which of its
// groups may serve. Computed when asked for; references stay valid. Not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "planner/search/mode_costs.h"

namespace sailor {

struct StageUse {
  std::vector<double> weights;  // by limit
  double usd_per_s = 0;
};

class StageUses {
 public:
  StageUses(const ModeCosts& costs, const std::vector<ResourceLimit>& limits, int replicas)
      : costs_(costs), limits_(limits), replicas_(replicas), known_(costs.modes().size()) {}

  size_t limits() const { return limits_.size(); }

  const StageUse& of(int mode, uint32_t groups) {
    auto [it, added] = known_[mode].try_emplace(groups);
    if (added) {
      for (const ResourceLimit& limit : limits_)
        it->second.weights.push_back(replicas_ * costs_.least_weight(mode, groups, limit));
      it->second.usd_per_s = replicas_ * costs_.least_usd_per_s(mode, groups);
    }
    return it->second;
  }

 private:
  const ModeCosts& costs_;
  const std::vector<ResourceLimit>& limits_;
  const int replicas_;
  std::vector<std::map<uint32_t, StageUse>> known_;  // by mode
};

}  // namespace sailor
