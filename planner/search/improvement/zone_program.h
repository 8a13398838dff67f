// How many pipelines fit when each is of one of a few kinds and fractions of a pipeline count: the linear
// program max sum x_k with sum x_k use_k <= capacity, x >= 0. What it says no to has no whole solution
// either. Primal simplex from x = 0; small and dense (a row per counter). Pure, deterministic.
#pragma once

#include <cstdint>
#include <vector>

namespace sailor {

struct ZoneProgram {
  double pipelines = 0;
  int64_t work = 0;           // numbers that were computed
  std::vector<double> times;  // by kind; at most as many are above zero as there are counters
};

// `uses`: by kind and counter, at least one above zero for every kind. Stops as soon as `enough` fit.
ZoneProgram most_pipelines(const std::vector<const std::vector<int>*>& uses,
                           const std::vector<int64_t>& capacity, double enough);

}  // namespace sailor
