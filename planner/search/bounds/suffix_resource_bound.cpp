#include "planner/search/bounds/suffix_resource_bound.h"

#include <algorithm>
#include <numeric>

#include "planner/search/problem/goal.h"

namespace sailor {
namespace {
constexpr double kSupplySlack = 1 + 1e-9;
}  // namespace

bool suffices(const double* need, const double* left, size_t limits) {
  for (size_t limit = 0; limit < limits; ++limit)
    if (!suffices(need[limit], left[limit])) return false;
  return true;
}

SuffixResourceBound::SuffixResourceBound(ClassCosts& costs, const StageUses& uses, const StageSync& sync,
                                         int most_in_flight, size_t most_limits, bool money)
    : costs_(costs),
      uses_(uses),
      sync_(sync),
      layers_(costs.stage().layers()),
      most_in_flight_(std::min(most_in_flight, costs.stage().layers())),
      limits_(std::min(uses.limits(), most_limits)),
      width_(limits_ + money),
      lowest_(2 * costs.classes().size() * (layers_ + 1)),
      lowest_in_sync_(costs.classes().size() * (layers_ + 1)) {
  const size_t entries = 2 * static_cast<size_t>(most_in_flight_ + 1) * (layers_ + 1);
  need_ = std::make_unique_for_overwrite<double[]>(entries * width_);
  known_.resize(entries);
  choices_.resize(2 * (layers_ + 1));
  by_option_.resize(costs_.classes().size());
  std::iota(by_option_.begin(), by_option_.end(), 0);
  std::stable_sort(by_option_.begin(), by_option_.end(), [&](int a, int b) {
    return costs_.classes()[a].slowest() < costs_.classes()[b].slowest();
  });
}

// First layers of the longest stages by what sums of gradients take, by the first placement class that sums
// alike.
void SuffixResourceBound::limit_sync(double sync_s) {
  if (!(sync_s < kNever)) {
    std::fill(lowest_in_sync_.begin(), lowest_in_sync_.end(), int16_t{0});
    return;
  }
  for (int placement = 0; placement < costs_.size(); ++placement) {
    if (costs_.sync_like(placement) != placement) continue;
    const int classes = sync_.size_classes_within(placement, sync_s);
    int16_t* lowest = &lowest_in_sync_[placement * (layers_ + 1)];
    for (int end = 1, first = 0; end <= layers_; ++end) {
      while (first < end && costs_.stage().size_class(first, end) >= classes) ++first;
      lowest[end] = static_cast<int16_t>(first);
    }
  }
}

void SuffixResourceBound::set_limits(double bottleneck_s, double sync_s) {
  limit_sync(sync_s * kSupplySlack);
  std::fill(known_.begin(), known_.end(), char{0});
  for (std::vector<Choice>& choices : choices_) choices.clear();
  for (bool behind : {false, true})
    for (int placement = 0; placement < costs_.size(); ++placement) {
      int16_t* __restrict lowest = &lowest_[(behind * costs_.classes().size() + placement) * (layers_ + 1)];
      const int16_t* in_sync = &lowest_in_sync_[costs_.sync_like(placement) * (layers_ + 1)];
      costs_.find_lowest_in_time(placement, behind, bottleneck_s * kSupplySlack, lowest);
      for (int end = behind ? 1 : layers_; end <= layers_; ++end)
        lowest[end] = std::max(lowest[end], in_sync[end]);
    }
}

// A longer stage leaves less to the stages before it, and what those need never falls with `end`: for every
// use only the longest stage counts, and only where no other use of the same memory needs less of everything
// for as long a one.
const std::vector<SuffixResourceBound::Choice>& SuffixResourceBound::choices(int end, bool behind) {
  std::vector<Choice>& choices = choices_[behind * (layers_ + 1) + end];
  if (!choices.empty()) return choices;
  const auto covers = [&](const Choice& a, const Choice& b) {
    return a.first <= b.first && uses_.no_more_than(a.use, b.use);
  };
  size_t of_option = 0;  // where the choices of the present option begin
  for (int placement : by_option_) {
    if (!choices.empty() && choices.back().option != costs_.classes()[placement].slowest())
      of_option = choices.size();
    const int first = lowest_in_time(placement, end, behind);
    const int* use = uses_.of_segments(placement, end);
    for (const ClassCosts::Segment& segment : costs_.segments(placement, end)) {
      if (segment.highest < first) break;
      const Choice choice{*use++, costs_.classes()[placement].slowest(), std::max(first, segment.lowest)};
      if (choice.use < 0 || choice.first >= end ||
          std::any_of(choices.begin() + of_option, choices.end(),
                      [&](const Choice& other) { return covers(other, choice); }))
        continue;
      choices.erase(std::remove_if(choices.begin() + of_option, choices.end(),
                                   [&](const Choice& other) { return covers(choice, other); }),
                    choices.end());
      choices.push_back(choice);
    }
  }
  return choices;
}

void SuffixResourceBound::find_need(int end, int in_flight, bool behind, size_t entry) {
  known_[entry] = 1;
  double* __restrict need = &need_[entry * width_];
  std::fill_n(need, width_, end == 0 ? 0 : kNever);
  if (end == 0) return;
  int option = -1, fits_from = 0;  // the first layer of the longest stage that its memory holds
  for (const Choice& choice : choices(end, behind)) {
    if (choice.option != option) {
      option = choice.option;
      fits_from = costs_.lowest_first(option, end, in_flight);
    }
    const int first = std::max(choice.first, fits_from);
    if (first >= end) continue;
    const double* before = this->need(first, in_flight + 1, true);
    const double* amounts = uses_.amounts(choice.use);
    for (size_t limit = 0; limit < limits_; ++limit)
      need[limit] = std::min(need[limit], amounts[limit] + before[limit]);
    if (width_ > limits_) need[limits_] = std::min(need[limits_], amounts[uses_.limits()] + before[limits_]);
  }
}

}  // namespace sailor
