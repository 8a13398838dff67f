// What a run of layers needs at least when no stage may take longer than a given bottleneck, nor sum
// gradients for longer than a given time: a stage holds whole layers, only as many as fit, and pays for its
// messages. The strongest bound of the search.
//
// For every limit on resources by itself, and for money, the least use of any sequence of stages that covers
// layers [0, end) is found by dynamic programming; entries are computed when they are asked for. Not
// thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "planner/search/stage_sync.h"
#include "planner/search/stage_uses.h"

namespace sailor {

class Coverage {
 public:
  // With `most_in_flight` microbatches or more in flight memory counts as with so many; only the first
  // `most_limits` limits are looked at.
  Coverage(ModeCosts& costs, StageUses& uses, const StageSync& sync, int replicas, int most_in_flight,
           size_t most_limits);

  // From now on for stages that take, and sum gradients for, at most this long.
  void set_limits(double bottleneck_s, double sync_s);
  // The first layer of the longest stage that ends at `end`; `end` when not even one layer is short enough.
  int lowest_in_time(int mode, int end, bool behind) const {
    return lowest_[(static_cast<size_t>(behind) * costs_.modes().size() + mode) * (layers_ + 1) + end];
  }
  // What a stage's messages add to it at least, when it is first of all or not, and others follow or not.
  double messages_s(int mode, bool first, bool behind) const {
    return (behind ? costs_.least_activation_s(mode) : 0) + (first ? 0 : costs_.least_gradient_s(mode));
  }
  // Can layers [0, end) be held by what is `left` of every limit, by stages of which the last has `in_flight`
  // microbatches and those before it one more each? `behind`: other stages follow.
  bool possible(int end, int in_flight, bool behind, const double* left);
  // What those stages cost per second, at least; infinite when there is no such sequence.
  double usd_per_s(int end, int in_flight, bool behind) { return need(end, in_flight, behind)[limits_]; }

 private:
  const double* need(int end, int in_flight, bool behind);

  ModeCosts& costs_;
  StageUses& uses_;
  const StageSync& sync_;
  const int layers_;
  const int most_in_flight_;
  const bool data_parallel_;
  const bool published_;
  const size_t limits_;
  std::vector<int16_t> lowest_;  // [behind][mode][end]: first layer of the longest stage
  // [behind][in_flight][end][limit], money last; large and mostly never touched, so not even cleared.
  std::unique_ptr<double[]> need_;
  std::vector<bool> known_;
};

}  // namespace sailor
