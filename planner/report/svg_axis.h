// Axes of the project's pictures. Internal to planner/report. Pure.
#pragma once

#include <algorithm>
#include <cmath>

namespace sailor {

// The step of 1, 2 or 5 times a power of ten that gives at most `most` intervals. Requires span > 0.
inline double nice_step(double span, int most) {
  const double power = std::pow(10, std::floor(std::log10(span / most)));
  for (double factor : {1.0, 2.0, 5.0})
    if (span / (factor * power) <= most) return factor * power;
  return 10 * power;
}

// Round marks from `begin` to `end`, which cover the given values.
struct SvgAxis {
  double begin = 0, end = 1, step = 1;

  // From 0 to a little beyond the largest value.
  static SvgAxis from_zero(double largest) { return between(0, std::max(largest, 1e-300) * 1.02); }
  static SvgAxis between(double least, double most) {
    if (!(most > least)) most = least + std::max(1e-300, std::abs(least) * 0.1);
    SvgAxis axis;
    axis.step = nice_step(most - least, 5);
    axis.begin = axis.step * std::floor(least / axis.step);
    axis.end = axis.step * std::ceil(most / axis.step);
    return axis;
  }
  int marks() const { return static_cast<int>(std::lround((end - begin) / step)) + 1; }
  double mark(int i) const { return begin + i * step; }
  double along(double value) const { return (value - begin) / (end - begin); }  // 0 to 1
};

}  // namespace sailor
