#include "planner/search/costs/stage_tables.h"

#include <algorithm>

namespace sailor {

StageSync::StageSync(const ClassCosts& costs, int replicas)
    : costs_(costs), replicas_(replicas), rows_(costs.classes().size()) {}

const StageSync::Row& StageSync::fill(int placement) const {
  Row& row = rows_[placement];
  for (const auto& [first, end] : costs_.stage().size_class_stages())
    row.seconds.push_back(costs_.sync_s(placement, first, end, replicas_));
  // Classes are in the order of sizes.
  row.at_least = row.seconds;
  for (size_t i = row.at_least.size() - 1; i-- > 0;)
    row.at_least[i] = std::min(row.at_least[i], row.at_least[i + 1]);
  return row;
}

int StageSync::size_classes_within(int placement, double most_s) const {
  const std::vector<double>& at_least = row(placement).at_least;
  return static_cast<int>(std::upper_bound(at_least.begin(), at_least.end(), most_s) - at_least.begin());
}

StageUses::StageUses(const ClassCosts& costs, const std::vector<ResourceLimit>& limits)
    : costs_(costs), limits_(limits), layers_(costs.stage().layers()), known_(costs.classes().size()) {
  for (int placement = 0; placement < costs.size(); ++placement)
    for (int end = 0; end <= layers_; ++end) {
      begin_.push_back(of_segments_.size());
      for (const ClassCosts::Segment& segment : costs.segments(placement, end))
        of_segments_.push_back(segment.groups == 0 ? -1 : number(placement, segment.groups));
    }
  of_segments_.push_back(-1);  // where the last segments would begin if there are none
  covering_ = size();
  const auto no_more = [](const StageUse& a, const StageUse& b) {
    return a.charge_per_s <= b.charge_per_s &&
           std::equal(a.weights.begin(), a.weights.end(), b.weights.begin(),
                      [](double x, double y) { return x <= y; });
  };
  for (int one = 0; one < covering_; ++one)
    for (int other = 0; other < covering_; ++other) no_more_.push_back(no_more(uses_[one], uses_[other]));
}

int StageUses::number(int placement, uint32_t groups) {
  const auto [it, added] = known_[placement].try_emplace(groups, 0);
  if (!added) return it->second;
  StageUse use;
  for (const ResourceLimit& limit : limits_)
    use.weights.push_back(costs_.least_weight(placement, groups, limit));
  use.charge_per_s = costs_.least_charge_per_s(placement, groups);
  std::vector<double> amounts = use.weights;
  amounts.push_back(use.charge_per_s);
  const auto [known, fresh] = distinct_.try_emplace(std::move(amounts), size());
  if (fresh) {
    uses_.push_back(std::move(use));
    amounts_.insert(amounts_.end(), known->first.begin(), known->first.end());
  }
  return it->second = known->second;
}

}  // namespace sailor
