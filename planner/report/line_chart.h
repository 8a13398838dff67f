// Measured values over the steps of a run as an SVG: lines, levels that they are held against, and the steps
// at which something changed. Readable on light and dark backgrounds; no script, no network. Pure.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace sailor {

struct ChartSeries {
  std::string name;
  std::vector<std::pair<double, double>> points;  // x ascending; what is not finite is left out
  bool dots = false;                              // points of their own, not joined
};

// What the series are held against, dashed: constant from each x to the next, the last to the end.
struct ChartLevel {
  std::string name;
  std::vector<std::pair<double, double>> from;  // x ascending, value; a value that is not finite is a gap
};

struct LineChart {
  std::string title, x_name, y_name;
  std::vector<ChartSeries> series;  // at most three
  std::vector<ChartLevel> levels;
  std::vector<std::pair<double, std::string>> marks;  // vertical lines with a word each
  bool from_zero = false;                             // the y axis
};

// The picture's size does not depend on the number of points: of very many, each column of pixels shows the
// least and the greatest.
std::string line_chart_svg(const LineChart& chart);

}  // namespace sailor
