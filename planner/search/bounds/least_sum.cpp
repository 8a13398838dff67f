#include "planner/search/bounds/least_sum.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "planner/search/problem/goal.h"

namespace sailor {
namespace {
constexpr double kFactors[] = {0.6, 2.2};  // of the price at which all GPUs cost as much as the layers take
constexpr size_t kPrices = 10;             // none included; what is left over has no price either
}  // namespace

LeastSum::LeastSum(const ClassCosts& costs, const StageUses& uses, const std::vector<double>& capacity,
                   size_t most_limits)
    : costs_(costs), uses_(uses) {
  const double once = costs.stage().least_compute_s(0, costs.stage().layers());
  prices_.push_back({});
  for (size_t limit = 0; limit < std::min(most_limits, capacity.size()); ++limit)
    for (double factor : kFactors)
      if (capacity[limit] > 0 && std::isfinite(capacity[limit]) && prices_.size() < kPrices)
        prices_.push_back({limit, factor * once / capacity[limit]});
  prices_.resize(kPrices);
}

void LeastSum::update(const SuffixResourceBound& suffix) {
  const int layers = costs_.stage().layers();
  using Row = std::array<double, kPrices>;
  least_.resize((layers + 1) * kPrices);
  std::fill_n(least_.begin(), kPrices, 0);
  for (int end = 1; end <= layers; ++end) {
    Row best;
    best.fill(kNever);
    const bool behind = end < layers;
    for (int placement = 0; placement < costs_.size(); ++placement) {
      const int lowest = suffix.lowest_in_time(placement, end, behind);
      const int* of_segment = uses_.of_segments(placement, end);
      for (const ClassCosts::Segment& segment : costs_.segments(placement, end)) {
        if (segment.highest < lowest) break;
        const int number = *of_segment++;
        if (number < 0) continue;
        const double* amounts = uses_.amounts(number);
        Row use;
        for (size_t p = 0; p < kPrices; ++p) use[p] = prices_[p].per_unit * amounts[prices_[p].limit];
        for (int first = std::max(lowest, segment.lowest); first <= segment.highest; ++first) {
          const double stage =
              suffix.messages_s(placement, first == 0, behind) + costs_.compute_s(placement, first, end);
          const double* from = &least_[first * kPrices];
          for (size_t p = 0; p < kPrices; ++p) best[p] = std::min(best[p], from[p] + stage + use[p]);
        }
      }
    }
    std::copy(best.begin(), best.end(), least_.begin() + end * kPrices);
  }
}

double LeastSum::seconds(int end, const double* left) const {
  double most = 0;
  if (least_.empty()) return most;
  const double* least = &least_[end * prices_.size()];
  for (size_t p = 0; p < prices_.size(); ++p)
    most = std::max(most, least[p] - prices_[p].per_unit * left[prices_[p].limit]);
  return most;
}

}  // namespace sailor
