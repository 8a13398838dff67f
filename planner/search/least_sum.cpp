#include "planner/search/least_sum.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace sailor {
namespace {
constexpr double kNever = std::numeric_limits<double>::infinity();
}  // namespace

LeastSum::LeastSum(const ModeCosts& costs, const StageUses& uses, const std::vector<double>& capacity,
                   size_t most_limits)
    : costs_(costs), uses_(uses) {
  const double once = costs.stage().least_compute_s(0, costs.stage().layers());
  prices_.push_back({});
  for (size_t limit = 0; limit < std::min(most_limits, capacity.size()); ++limit)
    for (double factor : {0.6, 2.2})
      if (capacity[limit] > 0 && std::isfinite(capacity[limit]))
        prices_.push_back({limit, factor * once / capacity[limit]});
}

void LeastSum::update(const Coverage& coverage) {
  const int layers = costs_.stage().layers();
  const size_t prices = prices_.size();
  least_.assign((layers + 1) * prices, kNever);
  std::fill_n(least_.begin(), prices, 0);
  std::vector<double> use(prices);
  for (int end = 1; end <= layers; ++end) {
    double* to = &least_[end * prices];
    const bool behind = end < layers;
    for (int mode = 0; mode < costs_.size(); ++mode) {
      const int lowest = coverage.lowest_in_time(mode, end, behind);
      const int* of_segment = uses_.of_segments(mode, end);
      for (const ModeCosts::Segment& segment : costs_.segments(mode, end)) {
        if (segment.highest < lowest) break;
        const int number = *of_segment++;
        if (number < 0) continue;
        const double* amounts = uses_.amounts(number);
        for (size_t p = 0; p < prices; ++p) use[p] = prices_[p].per_unit * amounts[prices_[p].limit];
        for (int first = std::max(lowest, segment.lowest); first <= segment.highest; ++first) {
          const double stage =
              coverage.messages_s(mode, first == 0, behind) + costs_.compute_s(mode, first, end);
          const double* from = &least_[first * prices];
          for (size_t p = 0; p < prices; ++p) to[p] = std::min(to[p], from[p] + stage + use[p]);
        }
      }
    }
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
