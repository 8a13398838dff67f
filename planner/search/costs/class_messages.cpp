#include "planner/search/costs/class_messages.h"

#include <algorithm>
#include <limits>

namespace sailor {
namespace {
constexpr double kNever = std::numeric_limits<double>::infinity();
}

ClassMessages::ClassMessages(const StageCosts& costs, const Resources& resources,
                             const std::vector<PlacementClass>& classes)
    : costs_(costs), kind_of_(costs.layers(), 0) {
  std::vector<std::vector<int>> smallest;  // by placement class: options of the smallest TP degree
  for (const PlacementClass& placement : classes) {
    facing_.push_back(placement.options());
    smallest.push_back(facing_.back());
    std::erase_if(smallest.back(), [&](int o) { return resources.options[o].tp != placement.least_tp; });
  }
  std::vector<int> boundaries;  // the first of each kind
  for (int layer = 1; layer < costs.layers(); ++layer) {
    const auto like = std::find_if(boundaries.begin(), boundaries.end(),
                                   [&](int other) { return costs.same_messages(other, layer); });
    kind_of_[layer] = like - boundaries.begin();
    if (like == boundaries.end()) boundaries.push_back(layer);
  }
  kinds_ = boundaries.size();

  const size_t n = classes.size(), options = resources.options.size();
  activation_s_.assign(n * n * kinds_, kNever);
  gradient_s_ = activation_s_;
  least_activation_s_.assign(n, kNever);
  least_gradient_s_ = least_activation_s_;
  // By upstream and downstream option.
  std::vector<double> forward_s(options * options), backward_s(options * options);
  const auto least = [&](const std::vector<double>& s, const std::vector<int>& ups,
                         const std::vector<int>& downs) {
    double least_s = kNever;
    for (int a : ups)
      for (int b : downs) least_s = std::min(least_s, s[a * options + b]);
    return least_s;
  };
  // The slowest upstream faces someone, and so does one of the smallest degree; downstream as well.
  const auto at_least = [&](const std::vector<double>& s, size_t up, size_t down) {
    return std::max({least(s, classes[up].groups.front().options, facing_[down]),
                     least(s, facing_[up], classes[down].groups.front().options),
                     least(s, smallest[up], facing_[down]), least(s, facing_[up], smallest[down])});
  };
  for (size_t kind = 0; kind < kinds_; ++kind) {
    for (int a : costs.options())
      for (int b : costs.options()) {
        forward_s[a * options + b] = costs.activation_s(a, b, boundaries[kind]);
        backward_s[a * options + b] = costs.gradient_s(b, a, boundaries[kind]);
      }
    for (size_t up = 0; up < n; ++up)
      for (size_t down = 0; down < n; ++down) {
        const size_t at = (up * n + down) * kinds_ + kind;
        activation_s_[at] = at_least(forward_s, up, down);
        gradient_s_[at] = at_least(backward_s, up, down);
        least_activation_s_[up] = std::min(least_activation_s_[up], activation_s_[at]);
        least_gradient_s_[down] = std::min(least_gradient_s_[down], gradient_s_[at]);
      }
  }
}

double ClassMessages::least_usd(int upstream, int downstream, int layer) const {
  double usd = kNever;
  for (int a : facing_[upstream])
    for (int b : facing_[downstream]) {
      usd = std::min(usd, costs_.message_usd(a, b, layer));
      if (usd <= 0) return usd;
    }
  return usd;
}

}  // namespace sailor
