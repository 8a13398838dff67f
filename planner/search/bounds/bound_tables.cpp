#include "planner/search/bounds/bound_tables.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include "planner/search/problem/goal.h"

namespace sailor {
namespace {
// Memory beyond that many microbatches costs more time than it prunes.
constexpr int kMostInFlight = 4;
// The first limits are the most binding.
constexpr size_t kMostLimits = 16;
// Limits that keep their place, and bottlenecks at which the others are compared.
constexpr size_t kKept = 3;
constexpr int kProbes = 8;
constexpr double kProbeStep = 0.35;

// The number from `low` to `high` that a power of two divides most often: bisections of many ranges that
// halve them there test the same numbers.
int roundest(int low, int high) {
  const auto differs = static_cast<unsigned>(low ^ high);
  return differs == 0 ? low : high & -static_cast<int>(std::bit_floor(differs));
}
}  // namespace

std::vector<ResourceLimit> most_binding_first(ClassCosts& costs, std::vector<ResourceLimit> limits) {
  if (limits.size() <= kKept + 1) return limits;
  const StageUses uses(costs, limits);
  const StageSync no_sync(costs, 1);
  SuffixResourceBound suffix(costs, uses, no_sync, kMostInFlight, limits.size(), false);
  const double longest_s = costs.stage().longest_layer_s();
  std::vector<std::vector<size_t>> ranked;  // by bottleneck: the limits, the most binding first
  for (int probe = 0; probe < kProbes; ++probe) {
    suffix.set_limits(longest_s * std::exp(kProbeStep * (probe + 1)), kNever);
    const double* need = suffix.need(costs.stage().layers(), 1, false);
    if (!std::isfinite(need[0])) continue;
    std::vector<size_t> order(limits.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      return need[a] * limits[b].capacity > need[b] * limits[a].capacity;
    });
    ranked.push_back(std::move(order));
  }
  std::vector<bool> taken(limits.size(), false);
  std::vector<ResourceLimit> out;
  const auto take = [&](size_t limit) {
    if (taken[limit]) return;
    taken[limit] = true;
    out.push_back(limits[limit]);
  };
  for (size_t limit = 0; limit < kKept; ++limit) take(limit);
  for (size_t rank = 0; rank < limits.size(); ++rank)
    for (const std::vector<size_t>& order : ranked) take(order[rank]);
  for (size_t limit = 0; limit < limits.size(); ++limit) take(limit);
  return out;
}

BoundTables::BoundTables(ClassCosts& costs, const std::vector<ResourceLimit>& limits)
    : costs_(costs),
      limits_(limits),
      uses_(costs, limits),
      no_sync_(costs, 1),
      suffix_(costs, uses_, no_sync_, kMostInFlight, kMostLimits, false),
      shortest_s_(costs.stage().longest_layer_s()) {}

const EgressBound& BoundTables::egress() {
  if (!egress_) egress_ = std::make_unique<EgressBound>(costs_, limits_);
  return *egress_;
}

const StageSync& BoundTables::sync(int replicas) {
  std::unique_ptr<StageSync>& sync = sync_[replicas];
  if (!sync) sync = std::make_unique<StageSync>(costs_, replicas);
  return *sync;
}

const std::vector<double>& BoundTables::need_at(int step) {
  const auto [it, added] = need_.try_emplace(step);
  if (added) {
    suffix_.set_limits(shortest_s_ * std::exp(kFloorStep * step), kNever);
    const double* need = suffix_.need(costs_.stage().layers(), 1, false);
    it->second.assign(need, need + suffix_.limits());
  }
  return it->second;
}

double BoundTables::bottleneck_floor_s(const std::vector<double>& capacity, double most_s) {
  if (!(shortest_s_ > 0) || !std::isfinite(shortest_s_)) return 0;
  const auto possible = [&](int step) {
    const std::vector<double>& need = need_at(step);
    return suffices(need.data(), capacity.data(), need.size());
  };
  if (most_s < shortest_s_) return kNever;
  const int last = static_cast<int>(std::ceil(std::log(most_s / shortest_s_) / kFloorStep));
  // The first step that is possible; one more than the last when none is.
  int low = 0, high = last + 1;
  while (low < high) {
    const int middle = roundest(low, high - 1);
    if (possible(middle))
      high = middle;
    else
      low = middle + 1;
  }
  if (low > last) return kNever;
  return low == 0 ? 0 : shortest_s_ * std::exp(kFloorStep * (low - 1));
}

}  // namespace sailor
