// Tables of gradient reduction and resource use of stages in placement classes, which are queried far more
// often than there are different values. Rows are filled on demand, so not thread-safe.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <vector>

#include "planner/search/costs/class_costs.h"

namespace sailor {

// Time of gradient reduction between D replicas, by placement class and layers: equal for stages with equal
// numbers of parameters, and for placement classes over the same links.
class StageSync {
 public:
  // `costs` must outlive this.
  StageSync(const ClassCosts& costs, int replicas);

  double seconds(int placement, int first, int end) const { return row(placement).seconds[at(first, end)]; }
  // A lower bound for this stage and all with more parameters: decreases when layers are removed, unlike the
  // times themselves.
  double this_or_longer_s(int placement, int first, int end) const {
    return row(placement).at_least[at(first, end)];
  }
  // Exactly the stages of size classes below this have a this_or_longer_s() of at most `most_s`.
  int size_classes_within(int placement, double most_s) const;

 private:
  // By size class; empty until requested.
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
  mutable std::vector<Row> rows_;  // by the first placement class with equal gradient reduction
};

// Lower bounds on the use of every limit, and on the cost per second, of one replica of a stage, by placement
// class and possible groups. Equal uses have one number, so that comparisons are done once. Numbers and
// references stay valid.
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
  // The same as adjacent numbers: by limit, then charge per second. Valid until the next number().
  const double* amounts(int number) const { return &amounts_[number * (limits_.size() + 1)]; }

  // `groups`: as ClassCosts::allowed() gives them, not 0.
  int number(int placement, uint32_t groups);
  // By ClassCosts::segments(placement class, end); -1 if no group is possible.
  const int* of_segments(int placement, int end) const {
    return &of_segments_[begin_[static_cast<size_t>(placement) * (layers_ + 1) + end]];
  }
  // Uses of whole segments have numbers below this; others occur where memory excludes some groups.
  int covering() const { return covering_; }
  // Does one use of segments need at most as much of every limit, and of money, as another one?
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
  std::vector<uint8_t> no_more_;  // [one][other]; bytes for speed
};

}  // namespace sailor
