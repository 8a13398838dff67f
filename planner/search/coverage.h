// What a run of layers needs at least when no stage may take longer than a given bottleneck: a stage holds
// whole layers, only as many as fit, and pays for its messages. The strongest bound of the search.
//
// For every limit on resources by itself, the least use of any sequence of stages that covers layers [0, end)
// is found by dynamic programming; entries are computed when they are asked for. Not thread-safe.
#pragma once

#include <cstdint>
#include <vector>

#include "planner/search/stage_uses.h"

namespace sailor {

class Coverage {
 public:
  Coverage(ModeCosts& costs, StageUses& uses, int replicas, int most_in_flight);

  // From now on for stages that take at most this long.
  void set_bottleneck(double seconds);
  double bottleneck_s() const { return bottleneck_s_; }
  // The first layer of the longest stage that ends at `end`; `end` when not even one layer is short enough.
  int lowest_in_time(int mode, int end, bool behind) const {
    return lowest_[(static_cast<size_t>(behind) * costs_.modes().size() + mode) * (layers_ + 1) + end];
  }
  // What a stage's messages add to it at least, when it is first of all or not.
  double messages_s(int mode, bool first) const { return forward_s_[mode] + (first ? 0 : backward_s_[mode]); }
  // Can layers [0, end) be held by what is `left` of every limit, by stages of which the last has `in_flight`
  // microbatches and those before it one more each? `behind`: other stages follow.
  bool possible(int end, int in_flight, bool behind, const double* left);

 private:
  const double* need(int end, int in_flight, bool behind);

  ModeCosts& costs_;
  StageUses& uses_;
  const int layers_;
  const int most_in_flight_;
  const bool data_parallel_;
  const bool published_;
  const size_t limits_;
  double bottleneck_s_ = 0;
  std::vector<double> forward_s_,
      backward_s_;               // by mode: cheapest message to the next, to the previous stage
  std::vector<int16_t> lowest_;  // [behind][mode][end]: first layer of the longest stage
  std::vector<double> need_;     // [behind][in_flight][end][limit]
  std::vector<bool> known_;
};

}  // namespace sailor
