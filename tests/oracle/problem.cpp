#include "tests/oracle/problem.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

namespace sailor::oracle {

double Curve::seconds(double bytes) const {
  if (bytes <= 0) return 0;
  if (points.empty()) {
    const double m = std::log2(bytes / 1e6);
    return bytes / 1e9 / (fit[0] * m * m + fit[1] * m + fit[2]);
  }
  if (bytes <= points.front().first) return points.front().second;
  // The segment that holds the size; beyond the last point, the last segment goes on.
  size_t k = 1;
  while (k + 1 < points.size() && points[k].first < bytes) ++k;
  const auto [x0, y0] = points[k - 1];
  const auto [x1, y1] = points[k];
  return y0 + (y1 - y0) / (x1 - x0) * (bytes - x0);
}

std::string to_string(const Problem& problem, const GridPlan& plan) {
  std::string text = fmt::format("microbatch {}, cuts {}:", plan.microbatch, fmt::join(plan.cuts, ","));
  for (size_t j = 0; j < plan.pipelines.size(); ++j) {
    text += j == 0 ? " " : " | ";
    for (size_t i = 0; i < plan.pipelines[j].size(); ++i) {
      const Cell& cell = plan.pipelines[j][i];
      text += fmt::format("{}{}/{} tp{}", i == 0 ? "" : " ", problem.types[cell.type].name,
                          problem.zones[cell.zone].name, cell.tp);
    }
  }
  return text;
}

}  // namespace sailor::oracle
