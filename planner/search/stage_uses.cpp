#include "planner/search/stage_uses.h"

#include <algorithm>

namespace sailor {

StageUses::StageUses(const ModeCosts& costs, const std::vector<ResourceLimit>& limits)
    : costs_(costs), limits_(limits), layers_(costs.stage().layers()), known_(costs.modes().size()) {
  for (int mode = 0; mode < costs.size(); ++mode)
    for (int end = 0; end <= layers_; ++end) {
      begin_.push_back(of_segments_.size());
      for (const ModeCosts::Segment& segment : costs.segments(mode, end))
        of_segments_.push_back(segment.groups == 0 ? -1 : number(mode, segment.groups));
    }
  of_segments_.push_back(-1);  // where the last segments would begin if there are none
  covering_ = size();
  const auto no_more = [](const StageUse& a, const StageUse& b) {
    return a.usd_per_s <= b.usd_per_s && std::equal(a.weights.begin(), a.weights.end(), b.weights.begin(),
                                                    [](double x, double y) { return x <= y; });
  };
  for (int one = 0; one < covering_; ++one)
    for (int other = 0; other < covering_; ++other) no_more_.push_back(no_more(uses_[one], uses_[other]));
}

int StageUses::number(int mode, uint32_t groups) {
  const auto [it, added] = known_[mode].try_emplace(groups, 0);
  if (!added) return it->second;
  StageUse use;
  for (const ResourceLimit& limit : limits_) use.weights.push_back(costs_.least_weight(mode, groups, limit));
  use.usd_per_s = costs_.least_usd_per_s(mode, groups);
  std::vector<double> amounts = use.weights;
  amounts.push_back(use.usd_per_s);
  const auto [known, fresh] = distinct_.try_emplace(std::move(amounts), size());
  if (fresh) {
    uses_.push_back(std::move(use));
    amounts_.insert(amounts_.end(), known->first.begin(), known->first.end());
  }
  return it->second = known->second;
}

}  // namespace sailor
