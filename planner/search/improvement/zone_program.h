// The number of repetitions of each of a few pipeline patterns that maximizes the pipelines that fit,
// fractions allowed: the linear program max sum x_k pipelines_k with sum x_k use_k <= capacity, x >= 0. If it
// is infeasible, so is the integer problem. Primal simplex from x = 0; small and dense (a row per counter).
// Pure, deterministic.
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
  std::vector<double> times;  // by pattern; at most as many are nonzero as there are counters
};

// Stops as soon as `enough` pipelines fit.
ZoneProgram most_pipelines(const std::vector<RepeatedPattern>& patterns, const std::vector<int64_t>& capacity,
                           double enough);

}  // namespace sailor
