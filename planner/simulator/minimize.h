// Minimizes a function of a few variables without derivatives: the simplex method of Nelder and Mead
// (Computer Journal 7, 1965), restarted at its own result until there is no improvement. Deterministic.
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

// Requires: `step` has the size of `start`, no step is 0, and `f` returns a number (infinity where it is
// undefined).
Minimum minimize(const std::function<double(std::span<const double>)>& f, std::vector<double> start,
                 const std::vector<double>& step, int max_evaluations = 2000);

}  // namespace sailor
