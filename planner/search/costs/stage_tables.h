// Tables of what stages of placement classes take of gradient sums and of resources: they are asked for far
// more often than there are different answers. Rows are filled on demand, so one thread at a time.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <vector>

#include "planner/search/costs/class_costs.h"

namespace sailor {

// How long stages sum gradients between D replicas, by placement class and layers: one answer for stages with
// equally many parameters, and for placement classes over the same links.
class StageSync {
 public:
  // `costs` must outlive this.
  StageSync(const ClassCosts& costs, int replicas);

  double seconds(int placement, int first, int end) const { return row(placement).seconds[at(first, end)]; }
  // The same for this stage or any that holds more parameters, at least: falls when layers are taken away,
  // which the times themselves need not do.
  double this_or_longer_s(int placement, int first, int end) const {
    return row(placement).at_least[at(first, end)];
  }
  // Stages of the size classes below this, and only they, have a this_or_longer_s() of at most `most_s`.
  int size_classes_within(int placement, double most_s) const;

 private:
  // By size class; empty until asked for.
  struct Row {
    std::vector<double> seconds, at_least;
  };

  const Row& row(int placement) const {
    const Row& row = rows_[costs_.sync_like(placement)];
    return row.seconds.empty() ? fill(costs_.sync_like(placement)) : row;
  }
  size_t at(int first, int end) const { return costs_.stage().size_class(first, end); }
  const Row& fill(int placement) const;

  const ClassCosts& costs_;
  const int replicas_;
  mutable std::vector<Row> rows_;  // by the first placement class that sums alike
};

// What one replica of a stage uses of every limit, and costs per second, at least, by placement class and by
// which of its groups may serve. Equal uses have one number, so that whoever compares them does so once.
// Numbers and references stay valid.
struct StageUse {
  std::vector<double> weights;  // by limit
  double charge_per_s = 0;
};

class StageUses {
 public:
  // Both must outlive this.
  StageUses(const ClassCosts& costs, const std::vector<ResourceLimit>& limits);

  size_t limits() const { return limits_.size(); }
  int size() const { return static_cast<int>(uses_.size()); }
  const StageUse& operator[](int number) const { return uses_[number]; }
  // The same as numbers side by side: by limit, then charge per second. Valid until the next number().
  const double* amounts(int number) const { return &amounts_[number * (limits_.size() + 1)]; }

  // `groups`: as ClassCosts::allowed() gives them, not 0.
  int number(int placement, uint32_t groups);
  // By ClassCosts::segments(placement class, end); -1 where no group may serve.
  const int* of_segments(int placement, int end) const {
    return &of_segments_[begin_[static_cast<size_t>(placement) * (layers_ + 1) + end]];
  }
  // Uses of whole segments have the numbers below this; others serve where memory leaves some groups out.
  int covering() const { return covering_; }
  // Does one use of segments need no more of any limit, nor more money, than another one?
  bool no_more_than(int one, int other) const {
    return no_more_[static_cast<size_t>(one) * covering_ + other] != 0;
  }

 private:
  const ClassCosts& costs_;
  const std::vector<ResourceLimit>& limits_;
  const int layers_;
  std::deque<StageUse> uses_;
  std::vector<double> amounts_;                 // [number][limit], money last
  std::vector<std::map<uint32_t, int>> known_;  // by placement class
  std::map<std::vector<double>, int> distinct_;
  std::vector<size_t> begin_;  // [class][end], into of_segments_
  std::vector<int> of_segments_;
  int covering_ = 0;
  std::vector<uint8_t> no_more_;  // [one][other]; bytes, because it is asked so often
};

}  // namespace sailor
