#include "planner/search/least_sum.h"

#include <algorithm>
#include <limits>

namespace sailor {
namespace {
constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr size_t kMostLimits = 6;
}  // namespace

LeastSum::LeastSum(const ModeCosts& costs, StageUses& uses, const std::vector<double>& capacity)
    : costs_(costs), uses_(uses) {
  const double once = costs.stage().least_compute_s(0, costs.stage().layers());
  prices_.push_back({});
  for (size_t limit = 0; limit < std::min(kMostLimits, capacity.size()); ++limit)
    for (double factor : {0.5, 1.5, 4.0})
      if (capacity[limit] > 0) prices_.push_back({limit, factor * once / capacity[limit], {}});
}

void LeastSum::update(const Coverage& coverage) {
  for (Price& price : prices_) fill(price, coverage);
}

void LeastSum::fill(Price& price, const Coverage& coverage) const {
  const int layers = costs_.stage().layers();
  price.least.assign(layers + 1, kNever);
  price.least[0] = 0;
  for (int end = 1; end <= layers; ++end)
    for (int mode = 0; mode < costs_.size(); ++mode) {
      const int lowest = coverage.lowest_in_time(mode, end, true);
      for (const ModeCosts::Segment& segment : costs_.segments(mode, end)) {
        if (segment.groups == 0) continue;
        const double use = price.per_unit * uses_.of(mode, segment.groups).weights[price.limit];
        for (int first = std::max(lowest, segment.lowest); first <= segment.highest; ++first) {
          const double stage =
              use + coverage.messages_s(mode, first == 0) + costs_.compute_s(mode, first, end);
          price.least[end] = std::min(price.least[end], price.least[first] + stage);
        }
      }
    }
}

double LeastSum::seconds(int end, const double* left) const {
  double most = 0;
  for (const Price& price : prices_)
    if (!price.least.empty()) most = std::max(most, price.least[end] - price.per_unit * left[price.limit]);
  return most;
}

}  // namespace sailor
