#include "tests/oracle/front.h"

#include <algorithm>

namespace sailor::oracle {
namespace {
constexpr double kSame = 1 + 1e-12;
}

bool ParetoFront::covers(double iteration_s, double usd) const {
  // The slowest of those that are fast enough is the cheapest of them.
  const auto slower = std::partition_point(points_.begin(), points_.end(), [&](const FrontPoint& point) {
    return point.iteration_s <= iteration_s * kSame;
  });
  return slower != points_.begin() && (slower - 1)->usd <= usd * kSame;
}

void ParetoFront::add(FrontPoint point) {
  std::erase_if(points_, [&](const FrontPoint& other) {
    return point.iteration_s <= other.iteration_s && point.usd <= other.usd;
  });
  const auto place = std::partition_point(points_.begin(), points_.end(), [&](const FrontPoint& other) {
    return other.iteration_s < point.iteration_s;
  });
  points_.insert(place, std::move(point));
}

const FrontPoint* ParetoFront::fastest_within(double usd) const {
  const auto point = std::partition_point(points_.begin(), points_.end(),
                                          [&](const FrontPoint& other) { return other.usd > usd; });
  return point == points_.end() ? nullptr : &*point;
}

const FrontPoint* ParetoFront::cheapest_within(double iteration_s) const {
  const auto slower = std::partition_point(points_.begin(), points_.end(), [&](const FrontPoint& other) {
    return other.iteration_s <= iteration_s;
  });
  return slower == points_.begin() ? nullptr : &*(slower - 1);
}

}  // namespace sailor::oracle
