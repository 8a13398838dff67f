// Predicted against measured values as a self-contained SVG: logarithmic axes of equal length, the diagonal,
// and a band of 10 % on either side. Readable on light and dark backgrounds. Pure.
#pragma once

#include <string>
#include <vector>

#include "planner/report/accuracy.h"

namespace sailor {

struct ScatterSeries {
  std::string name;         // for the legend
  std::vector<Pair> pairs;  // > 0; others are omitted
};

// `unit` labels both axes, e.g. "s per iteration".
std::string scatter_svg(const std::string& title, const std::string& unit,
                        const std::vector<ScatterSeries>& series);

}  // namespace sailor
