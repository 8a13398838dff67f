#include "planner/search/coverage.h"

#include <algorithm>
#include <limits>

namespace sailor {
namespace {
constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr double kSlack = 1 + 1e-9;
}  // namespace

Coverage::Coverage(ModeCosts& costs, StageUses& uses, int replicas, int most_in_flight)
    : costs_(costs),
      uses_(uses),
      layers_(costs.stage().layers()),
      most_in_flight_(std::min(most_in_flight, costs.stage().layers())),
      data_parallel_(replicas > 1),
      published_(costs.stage().model() == CostModel::published),
      limits_(uses.limits()),
      forward_s_(costs.modes().size(), kNever),
      backward_s_(costs.modes().size(), kNever),
      lowest_(2 * costs.modes().size() * (layers_ + 1)) {
  for (int mode = 0; mode < costs.size(); ++mode)
    for (int other = 0; other < costs.size(); ++other)
      for (int layer = 1; layer < layers_; ++layer) {
        if (layer > 1 && costs.stage().same_messages(layer - 1, layer)) continue;
        forward_s_[mode] = std::min(forward_s_[mode], costs.activation_s(mode, other, layer));
        backward_s_[mode] = std::min(backward_s_[mode], costs.gradient_s(other, mode, layer));
      }
  const size_t entries = 2 * static_cast<size_t>(most_in_flight_ + 1) * (layers_ + 1);
  need_.resize(entries * limits_);
  known_.resize(entries);
}

void Coverage::set_bottleneck(double seconds) {
  bottleneck_s_ = seconds * kSlack;
  std::fill(known_.begin(), known_.end(), false);
  for (bool behind : {false, true})
    for (int mode = 0; mode < costs_.size(); ++mode) {
      int16_t* lowest = &lowest_[(behind * costs_.modes().size() + mode) * (layers_ + 1)];
      // Messages count where they add to the stage (published); native ones may hide behind it.
      const double to_next = published_ && behind ? forward_s_[mode] : 0;
      const double to_previous = published_ ? backward_s_[mode] : 0;
      int first = 1;
      for (int end = 1; end <= layers_; ++end) {
        while (first < end && costs_.compute_s(mode, first, end) + to_next + to_previous > bottleneck_s_)
          ++first;
        lowest[end] = static_cast<int16_t>(first);
        if (first == end || costs_.compute_s(mode, first, end) + to_next + to_previous > bottleneck_s_)
          lowest[end] = static_cast<int16_t>(end);
        // The first stage of all has nobody to send gradients to.
        if (costs_.compute_s(mode, 0, end) + to_next <= bottleneck_s_) lowest[end] = 0;
      }
    }
}

const double* Coverage::need(int end, int in_flight, bool behind) {
  in_flight = std::min(in_flight, most_in_flight_);
  const size_t entry =
      (static_cast<size_t>(behind) * (most_in_flight_ + 1) + in_flight) * (layers_ + 1) + end;
  double* need = &need_[entry * limits_];
  if (known_[entry]) return need;
  known_[entry] = true;
  std::fill_n(need, limits_, end == 0 ? 0 : kNever);
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
      const std::vector<double>& weights = uses_.of(mode, segment.groups).weights;
      for (size_t limit = 0; limit < limits_; ++limit)
        need[limit] = std::min(need[limit], weights[limit] + before[limit]);
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
