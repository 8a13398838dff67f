// The partial pipelines that a pipeline template search keeps: those that no other one dominates.
//
// A label dominates another of the same first layer and leading placement class when it has no more stages,
// uses no more of any resource and can end in no worse time and cost whatever comes before. Addresses stay
// valid as long as the store. Not thread-safe.
#pragma once

#include <cstddef>
#include <deque>
#include <vector>

#include "planner/search/costs/partial_pipeline.h"

namespace sailor {

struct Label : PartialPipeline {
  bool pure = true;        // all of its stages are
  int bounds_version = 0;  // when it was last found not to be hopeless
};

class LabelStore {
 public:
  explicit LabelStore(const TemplateProblem& problem);

  // Keeps a copy unless a label that is here dominates it, and drops those that it dominates. `floor_s`: no
  // pipeline has a shorter bottleneck. False when there is no room.
  bool insert(Label& label, double floor_s);
  // Replaces what is in `out` by the labels of one first layer and leading placement class, in an order that
  // depends on what was inserted only.
  void collect(int layer, int placement, std::vector<Label*>& out);
  // Labels inserted so far, dropped ones included.
  int64_t inserted() const { return static_cast<int64_t>(labels_.size()); }

 private:
  // What decides most comparisons of labels, side by side in memory.
  struct Entry {
    double sum_s, bottleneck_s, leading_s, first_used;
    int stages;
    Label* label;
  };

  // The labels of one first layer and leading placement class.
  struct Bucket {
    std::vector<Entry> strong;  // may dominate others; by sum
    std::vector<Entry> weak;    // may not
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
  std::vector<Bucket> buckets_;  // [layer][class]; none before the first label
  std::deque<Label> labels_;
  std::deque<std::vector<double>> used_;  // what labels point to
};

}  // namespace sailor
