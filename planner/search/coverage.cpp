#include "planner/search/coverage.h"

#include <algorithm>
#include <limits>

namespace sailor {
namespace {
constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr double kSlack = 1 + 1e-9;
}  // namespace

bool suffices(const double* need, const double* left, size_t limits) {
  for (size_t limit = 0; limit < limits; ++limit)
    if (need[limit] > left[limit] * kSlack + 1e-9) return false;
  return true;
}

Coverage::Coverage(ModeCosts& costs, const StageUses& uses, const StageSync& sync, int replicas,
                   int most_in_flight, size_t most_limits, bool money)
    : costs_(costs),
      uses_(uses),
      sync_(sync),
      layers_(costs.stage().layers()),
      most_in_flight_(std::min(most_in_flight, costs.stage().layers())),
      replicas_(replicas),
      published_(costs.stage().model() == CostModel::published),
      limits_(std::min(uses.limits(), most_limits)),
      width_(limits_ + money),
      lowest_(2 * costs.modes().size() * (layers_ + 1)) {
  const size_t entries = 2 * static_cast<size_t>(most_in_flight_ + 1) * (layers_ + 1);
  need_ = std::make_unique_for_overwrite<double[]>(entries * width_);
  known_.resize(entries);
  choices_.resize(2 * (layers_ + 1));
  firsts_.resize(layers_ + 1);
}

void Coverage::set_limits(double bottleneck_s, double sync_s) {
  bottleneck_s *= kSlack;
  sync_s *= kSlack;
  std::fill(known_.begin(), known_.end(), false);
  for (std::vector<Choice>& choices : choices_) choices.clear();
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
        if (sync_s < kNever)
          while (in_sync < end && sync_.this_or_longer_s(mode, in_sync, end) > sync_s) ++in_sync;
        // The first stage of all has nobody to send gradients to.
        lowest[end] = static_cast<int16_t>(std::max(late(0) ? in_time : 0, in_sync));
      }
    }
}

// A longer stage leaves less to the stages before it, and what those need never falls with `end`: for every
// use only the longest stage counts, and only where no other use of the same memory needs less of everything
// for as long a one.
const std::vector<Coverage::Choice>& Coverage::choices(int end, bool behind) {
  std::vector<Choice>& choices = choices_[behind * (layers_ + 1) + end];
  if (!choices.empty()) return choices;
  const auto covers = [&](const Choice& a, const Choice& b) {
    const std::vector<int>& frugal = uses_.no_more_than(b.use);
    return a.option == b.option && a.first <= b.first &&
           (a.use == b.use || std::binary_search(frugal.begin(), frugal.end(), a.use));
  };
  for (int mode = 0; mode < costs_.size(); ++mode) {
    const int first = lowest_in_time(mode, end, behind);
    const int* use = uses_.of_segments(mode, end);
    for (const ModeCosts::Segment& segment : costs_.segments(mode, end)) {
      if (segment.highest < first) break;
      const Choice choice{*use++, costs_.modes()[mode].slowest(), std::max(first, segment.lowest)};
      if (choice.use < 0 || choice.first >= end ||
          std::any_of(choices.begin(), choices.end(),
                      [&](const Choice& other) { return covers(other, choice); }))
        continue;
      std::erase_if(choices, [&](const Choice& other) { return covers(choice, other); });
      choices.push_back(choice);
    }
  }
  return choices;
}

const double* Coverage::need(int end, int in_flight, bool behind) {
  in_flight = std::min(in_flight, most_in_flight_);
  const size_t entry =
      (static_cast<size_t>(behind) * (most_in_flight_ + 1) + in_flight) * (layers_ + 1) + end;
  double* need = &need_[entry * width_];
  if (known_[entry]) return need;
  known_[entry] = true;
  std::fill_n(need, width_, end == 0 ? 0 : kNever);
  if (end == 0) return need;
  const std::vector<Choice>& choices = this->choices(end, behind);
  std::vector<int>& firsts = firsts_[end];
  firsts.clear();
  for (const Choice& choice : choices)
    firsts.push_back(std::max(choice.first, costs_.lowest_first(choice.option, end, in_flight, replicas_)));
  for (size_t i = 0; i < choices.size(); ++i) {
    if (firsts[i] >= end) continue;
    const double* before = this->need(firsts[i], in_flight + 1, true);
    const StageUse& use = uses_[choices[i].use];
    const double* weights = use.weights.data();
    for (size_t limit = 0; limit < limits_; ++limit)
      need[limit] = std::min(need[limit], weights[limit] + before[limit]);
    if (width_ > limits_) need[limits_] = std::min(need[limits_], use.usd_per_s + before[limits_]);
  }
  return need;
}

}  // namespace sailor
