// A minimum of a function of a few variables without derivatives: the simplex search of Nelder and Mead
// (Computer Journal 7, 1965), started again at its own result until it gains nothing. Deterministic.
#pragma once

#include <functional>
#include <span>
#include <vector>

namespace sailor {

struct Minimum {
  std::vector<double> at;
  double value = 0;
  int evaluations = 0;
};

// Requires: `step` as long as `start`, no step 0; `f` returns a number (infinity where it is not defined).
Minimum minimize(const std::function<double(std::span<const double>)>& f, std::vector<double> start,
                 const std::vector<double>& step, int max_evaluations = 2000);

}  // namespace sailor
