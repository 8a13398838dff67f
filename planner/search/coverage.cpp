#include "planner/search/coverage.h"

#include <algorithm>
#include <limits>

namespace sailor {
namespace {
constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr double kSlack = 1 + 1e-9;
}  // namespace

Coverage::Coverage(ModeCosts& costs, StageUses& uses, const StageSync& sync, int replicas, int most_in_flight,
                   size_t most_limits)
    : costs_(costs),
      uses_(uses),
      sync_(sync),
      layers_(costs.stage().layers()),
      most_in_flight_(std::min(most_in_flight, costs.stage().layers())),
      data_parallel_(replicas > 1),
      published_(costs.stage().model() == CostModel::published),
      limits_(std::min(uses.limits(), most_limits)),
      lowest_(2 * costs.modes().size() * (layers_ + 1)) {
  const size_t entries = 2 * static_cast<size_t>(most_in_flight_ + 1) * (layers_ + 1);
  need_ = std::make_unique_for_overwrite<double[]>(entries * (limits_ + 1));
  known_.resize(entries);
}

void Coverage::set_limits(double bottleneck_s, double sync_s) {
  bottleneck_s *= kSlack;
  sync_s *= kSlack;
  std::fill(known_.begin(), known_.end(), false);
  for (bool behind : {false, true})
    for (int mode = 0; mode < costs_.size(); ++mode) {
      int16_t* lowest = &lowest_[(behind * costs_.modes().size() + mode) * (layers_ + 1)];
      // Messages count where they add to the stage (published); native ones may hide behind it.
      const double to_next = published_ && behind ? costs_.least_activation_s(mode) : 0;
      const double to_previous = published_ ? costs_.least_gradient_s(mode) : 0;
      int in_time = 1, in_sync = 0;  // the first layers of the longest stages
      // Only the last stage has nobody behind it.
      for (int end = behind ? 1 : layers_; end <= layers_; ++end) {
        const auto late = [&](int first) {
          return costs_.compute_s(mode, first, end) + to_next + (first > 0 ? to_previous : 0) > bottleneck_s;
        };
        while (in_time < end && late(in_time)) ++in_time;
        while (in_sync < end && sync_.this_or_longer_s(mode, in_sync, end) > sync_s) ++in_sync;
        // The first stage of all has nobody to send gradients to.
        lowest[end] = static_cast<int16_t>(std::max(late(0) ? in_time : 0, in_sync));
      }
    }
}

const double* Coverage::need(int end, int in_flight, bool behind) {
  in_flight = std::min(in_flight, most_in_flight_);
  const size_t entry =
      (static_cast<size_t>(behind) * (most_in_flight_ + 1) + in_flight) * (layers_ + 1) + end;
  double* need = &need_[entry * (limits_ + 1)];
  if (known_[entry]) return need;
  known_[entry] = true;
  std::fill_n(need, limits_ + 1, end == 0 ? 0 : kNever);
  for (int mode = 0; mode < costs_.size() && end > 0; ++mode) {
    const int in_time = lowest_in_time(mode, end, behind);
    const int first = std::max(
        in_time, costs_.lowest_first(costs_.modes()[mode].slowest(), end, in_flight, data_parallel_));
    if (first >= end) continue;
    for (const ModeCosts::Segment& segment : costs_.segments(mode, end)) {
      if (segment.highest < first) break;
      if (segment.groups == 0) continue;
      // A longer stage leaves less to the stages before it; what is needed never falls with `end`.
      const double* before = this->need(std::max(first, segment.lowest), in_flight + 1, true);
      const StageUse& use = uses_.of(mode, segment.groups);
      const double* weights = use.weights.data();
      for (size_t limit = 0; limit < limits_; ++limit)
        need[limit] = std::min(need[limit], weights[limit] + before[limit]);
      need[limits_] = std::min(need[limits_], use.usd_per_s + before[limits_]);
    }
  }
  return need;
}

bool Coverage::possible(int end, int in_flight, bool behind, const double* left) {
  const double* needed = need(end, in_flight, behind);
  for (size_t limit = 0; limit < limits_; ++limit)
    if (needed[limit] > left[limit] * kSlack + 1e-9) return false;
  return true;
}

}  // namespace sailor
