#include "planner/report/svg_parts.h"

#include <algorithm>
#include <cmath>

namespace sailor {

RoundAxis::RoundAxis(double largest) {
  const double rough = std::max(largest, 1e-300) / 5;
  const double decade = std::pow(10, std::floor(std::log10(rough)));
  const double digit = rough / decade;
  step = decade * (digit <= 1 ? 1 : digit <= 2 ? 2 : digit <= 5 ? 5 : 10);
  end = step * std::ceil(largest / step * 1.02);
}

}  // namespace sailor
