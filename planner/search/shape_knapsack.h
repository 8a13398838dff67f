// Which shapes of pipelines, and how many of each, together push most microbatches through in a given time
// within the GPUs: a knapsack with a counter per resource. Exact while its table is small, else greedy; then
// a selection may be missed. Immutable once built.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "planner/search/pipeline_shapes.h"

namespace sailor {

using Selection = std::vector<int>;  // indices of shapes, one per pipeline

class ShapeKnapsack {
 public:
  // `capacity`: by counter. Both must outlive this.
  ShapeKnapsack(const std::vector<Shape>& shapes, const std::vector<int>& capacity);

  // The selection that pushes most microbatches through in `target_s`, at least `total`, or nothing.
  std::optional<Selection> fill(double target_s, int64_t total) const;

 private:
  std::optional<Selection> by_table(const std::vector<int>& worth, int64_t total) const;
  std::optional<Selection> greedy(const std::vector<int>& worth, int64_t total) const;

  const std::vector<Shape>& shapes_;
  const std::vector<int>& capacity_;
  std::vector<int64_t> stride_, offset_;
  int64_t states_ = 1;
  bool exact_ = true;
};

}  // namespace sailor
