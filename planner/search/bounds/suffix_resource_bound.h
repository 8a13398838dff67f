// What a run of layers needs at least when no stage may take longer than a given bottleneck, nor sum
// gradients for longer than a given time: a stage holds whole layers, only as many as fit, and pays for its
// messages. The strongest bound of the search.
//
// For every limit on resources by itself, and for money, the least use of any sequence of stages that covers
// layers [0, end) is found by dynamic programming; entries are computed when they are asked for. All numbers
// are for one replica. Not thread-safe.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "planner/search/costs/stage_tables.h"

namespace sailor {

// Is what is needed of a limit, of every limit, there, up to rounding?
inline bool suffices(double need, double left) {
  return need <= left * (1 + 1e-9) + 1e-9;
}
bool suffices(const double* need, const double* left, size_t limits);

class SuffixResourceBound {
 public:
  // With `most_in_flight` microbatches or more in flight memory counts as with so many; only the first
  // `most_limits` limits are tried, and money only with `money`.
  SuffixResourceBound(ClassCosts& costs, const StageUses& uses, const StageSync& sync, int most_in_flight,
                      size_t most_limits, bool money);

  // From now on for stages that take, and sum gradients for, at most this long.
  void set_limits(double bottleneck_s, double sync_s);
  // The first layer of the longest stage that ends at `end`; `end` when not even one layer is short enough.
  int lowest_in_time(int placement, int end, bool behind) const {
    return lowest_[(static_cast<size_t>(behind) * costs_.classes().size() + placement) * (layers_ + 1) + end];
  }
  // What a stage's messages add to it at least, when it is first of all or not, and others follow or not.
  double messages_s(int placement, bool first, bool behind) const {
    return (behind ? costs_.least_activation_s(placement) : 0) +
           (first ? 0 : costs_.least_gradient_s(placement));
  }
  // What stages need that hold layers [0, end), of which the last has `in_flight` microbatches and those
  // before it one more each: by limit, then charge per second; infinite when there are no such stages.
  // `behind`: other stages follow. Valid until set_limits().
  const double* need(int end, int in_flight, bool behind) {
    in_flight = std::min(in_flight, most_in_flight_);
    const size_t entry =
        (static_cast<size_t>(behind) * (most_in_flight_ + 1) + in_flight) * (layers_ + 1) + end;
    if (!known_[entry]) find_need(end, in_flight, behind, entry);
    return &need_[entry * width_];
  }
  size_t limits() const { return limits_; }  // that count
  // Can they be held by what is `left` of every limit?
  bool possible(int end, int in_flight, bool behind, const double* left) {
    return suffices(need(end, in_flight, behind), left, limits_);
  }
  // What they cost per second, at least.
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
  std::vector<int16_t> lowest_in_sync_;  // [class][end]: the same as far as gradients tell
  std::vector<int> by_option_;           // placement classes, those of one slowest option side by side
  // [behind][end]: of the stages that end there, by slowest option, those of which no other one is as long
  // and needs no more of anything; empty until asked for.
  std::vector<std::vector<Choice>> choices_;
  // [behind][in_flight][end][limit], money last; large and mostly never touched, so not even cleared.
  std::unique_ptr<double[]> need_;
  std::vector<char> known_;
};

}  // namespace sailor
