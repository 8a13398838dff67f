// How often each of a few patterns of pipelines is repeated so that most pipelines fit, fractions included:
// the linear program max sum x_k pipelines_k with sum x_k use_k <= capacity, x >= 0. What it rejects has no
// whole solution either. Primal simplex from x = 0; small and dense (a row per counter). Pure, deterministic.
#pragma once

#include <cstdint>
#include <vector>

namespace sailor {

struct RepeatedPattern {
  int pipelines = 1;
  std::vector<int> use;  // GPUs by counter; at least one above zero
};
struct ZoneProgram {
  double pipelines = 0;
  std::vector<double> times;  // by pattern; at most as many are above zero as there are counters
};

// Stops as soon as `enough` pipelines fit.
ZoneProgram most_pipelines(const std::vector<RepeatedPattern>& patterns, const std::vector<int64_t>& capacity,
                           double enough);

}  // namespace sailor
