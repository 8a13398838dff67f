// Lower bounds on the resources of a run of layers if no stage may take longer than a given bottleneck, nor
// reduce gradients for longer than a given time. A stage holds whole layers, only as many as fit, and pays
// for its messages. This is the strongest bound of the search.
//
// For every resource limit by itself, and for money, the minimum use of any sequence of stages that covers
// layers [0, end) is found by dynamic programming; entries are computed on demand. All numbers are for one
// replica. Not thread-safe.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "planner/search/costs/stage_tables.h"

namespace sailor {

// Is the need covered by what is left, for one limit or for all, up to rounding?
inline bool suffices(double need, double left) {
  return need <= left * (1 + 1e-9) + 1e-9;
}
bool suffices(const double* need, const double* left, size_t limits);

class SuffixResourceBound {
 public:
  // For `most_in_flight` or more microbatches in flight, memory counts as for that number. Only the first
  // `most_limits` limits are used, and money only if `money`.
  SuffixResourceBound(ClassCosts& costs, const StageUses& uses, const StageSync& sync, int most_in_flight,
                      size_t most_limits, bool money);

  // From now on for stages that take, and reduce gradients for, at most this long.
  void set_limits(double bottleneck_s, double sync_s);
  // The first layer of the longest stage that ends at `end`; `end` when not even one layer is short enough.
  int lowest_in_time(int placement, int end, bool behind) const {
    return lowest_[(static_cast<size_t>(behind) * costs_.classes().size() + placement) * (layers_ + 1) + end];
  }
  // A lower bound on the messages of a stage, depending on whether it is the first of all and whether others
  // follow.
  double messages_s(int placement, bool first, bool behind) const {
    return (behind ? costs_.least_activation_s(placement) : 0) +
           (first ? 0 : costs_.least_gradient_s(placement));
  }
  // Minimum needs of stages that hold layers [0, end), of which the last has `in_flight` microbatches and
  // each earlier one has one more: by limit, then charge per second; infinite if there are no such stages.
  // `behind`: other stages follow. Valid until set_limits().
  const double* need(int end, int in_flight, bool behind) {
    in_flight = std::min(in_flight, most_in_flight_);
    const size_t entry =
        (static_cast<size_t>(behind) * (most_in_flight_ + 1) + in_flight) * (layers_ + 1) + end;
    if (!known_[entry]) find_need(end, in_flight, behind, entry);
    return &need_[entry * width_];
  }
  size_t limits() const { return limits_; }  // number of limits in use
  // Are they covered by what is `left` of every limit?
  bool possible(int end, int in_flight, bool behind, const double* left) {
    return suffices(need(end, in_flight, behind), left, limits_);
  }
  // A lower bound on their cost per second.
  double charge_per_s(int end, int in_flight, bool behind) { return need(end, in_flight, behind)[limits_]; }

 private:
  void limit_sync(double sync_s);
  void find_need(int end, int in_flight, bool behind, size_t entry);

  struct Choice {
    int use, option;  // option: the slowest, whose memory counts
    int first;        // layer of the longest stage in time
  };
  const std::vector<Choice>& choices(int end, bool behind);

  ClassCosts& costs_;
  const StageUses& uses_;
  const StageSync& sync_;
  const int layers_;
  const int most_in_flight_;
  const size_t limits_, width_;          // width_: and money
  std::vector<int16_t> lowest_;          // [behind][class][end]: first layer of the longest stage
  std::vector<int16_t> lowest_in_sync_;  // [class][end]: the same as far as gradients are concerned
  std::vector<int> by_option_;           // placement classes, grouped by slowest option
  // [behind][end]: of the stages that end there, by slowest option, those that no other stage with as many
  // layers and at most equal needs dominates; empty until requested.
  std::vector<std::vector<Choice>> choices_;
  // [behind][in_flight][end][limit], money last; large and mostly unused, so not initialized.
  std::unique_ptr<double[]> need_;
  std::vector<char> known_;
};

}  // namespace sailor
