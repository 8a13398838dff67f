// What one replica of a stage uses of every limit, and costs per second, at least, by mode and by which of
// its groups may serve. Equal uses have one number, so that whoever compares them does so once. Numbers and
// references stay valid. Computes what is asked for the first time, so one thread at a time.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <vector>

#include "planner/search/mode_costs.h"

namespace sailor {

struct StageUse {
  std::vector<double> weights;  // by limit
  double usd_per_s = 0;
};

class StageUses {
 public:
  // Both must outlive this.
  StageUses(const ModeCosts& costs, const std::vector<ResourceLimit>& limits);

  size_t limits() const { return limits_.size(); }
  int size() const { return static_cast<int>(uses_.size()); }
  const StageUse& operator[](int number) const { return uses_[number]; }
  // The same as numbers side by side: by limit, then USD per second. Valid until the next number().
  const double* amounts(int number) const { return &amounts_[number * (limits_.size() + 1)]; }

  // `groups`: as ModeCosts::allowed() gives them, not 0.
  int number(int mode, uint32_t groups);
  // By ModeCosts::segments(mode, end); -1 where no group may serve.
  const int* of_segments(int mode, int end) const {
    return &of_segments_[begin_[static_cast<size_t>(mode) * (layers_ + 1) + end]];
  }
  // Uses of whole segments have the numbers below this; others serve where memory leaves some groups out.
  int covering() const { return covering_; }
  // Does one use of segments need no more of any limit, nor more money, than another one?
  bool no_more_than(int one, int other) const {
    return no_more_[static_cast<size_t>(one) * covering_ + other] != 0;
  }

 private:
  const ModeCosts& costs_;
  const std::vector<ResourceLimit>& limits_;
  const int layers_;
  std::deque<StageUse> uses_;
  std::vector<double> amounts_;                 // [number][limit], money last
  std::vector<std::map<uint32_t, int>> known_;  // by mode
  std::map<std::vector<double>, int> distinct_;
  std::vector<size_t> begin_;  // [mode][end], into of_segments_
  std::vector<int> of_segments_;
  int covering_ = 0;
  std::vector<uint8_t> no_more_;  // [one][other]; bytes, because it is asked so often
};

}  // namespace sailor
