// The partial pipelines that a pipeline template search keeps: those that are not dominated.
//
// A label dominates another with the same first layer and leading placement class if it has no more stages,
// uses no more of any resource and, for every continuation, ends in no worse time and cost. Addresses are
// valid as long as the store. Not thread-safe.
#pragma once

#include <cstddef>
#include <deque>
#include <vector>

#include "planner/search/costs/partial_pipeline.h"

namespace sailor {

// Relative; absorbs rounding when equals are compared.
inline constexpr double kEqualWithin = 1e-12;

struct Label : PartialPipeline {
  bool pure = true;        // all of its stages are pure
  int bounds_version = 0;  // when it was last found to be possible
};

class LabelStore {
 public:
  explicit LabelStore(const TemplateProblem& problem);

  // Stores a copy unless a stored label dominates it, and drops those that it dominates. `floor_s`: a lower
  // bound on all bottlenecks. False if there is no room.
  bool insert(Label& label, double floor_s);
  // Replaces `out` by the labels of one first layer and leading placement class, in an order that only
  // depends on the insertions.
  void collect(int layer, int placement, std::vector<Label*>& out);
  // Number of labels inserted so far, including dropped ones.
  int64_t inserted() const { return static_cast<int64_t>(labels_.size()); }

 private:
  // The values that decide most comparisons of labels, adjacent in memory.
  struct Entry {
    double sum_s, bottleneck_s, leading_s, first_used;
    int stages;
    Label* label;
  };

  // The labels of one first layer and leading placement class.
  struct Bucket {
    std::vector<Entry> strong;  // may dominate others; by sum
    std::vector<Entry> weak;    // may not dominate
  };

  Bucket& bucket(int layer, int placement) {
    return buckets_[static_cast<size_t>(layer) * problem_.costs.classes().size() + placement];
  }
  double later_s(const Entry& a, const Entry& b, double floor_s) const;
  bool dominates(const Entry& one, const Entry& other, double floor_s) const;

  const TemplateProblem& problem_;
  const double rounds_;
  const size_t limits_;
  const bool charge_matters_;
  std::vector<Bucket> buckets_;  // [layer][class]; empty before the first label
  std::deque<Label> labels_;
  std::deque<std::vector<double>> used_;  // storage of label uses
};

}  // namespace sailor
