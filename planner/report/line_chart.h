// Values over the steps of a run as SVG: lines, reference levels, and marks at steps where something changed.
// Readable on light and dark backgrounds; no script, no network. Pure.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace sailor {

struct ChartSeries {
  std::string name;
  std::vector<std::pair<double, double>> points;  // x ascending; values that are not finite are omitted
  bool dots = false;                              // separate points, not connected
};

// A reference level, dashed: constant from each x to the next, the last to the end.
struct ChartLevel {
  std::string name;
  std::vector<std::pair<double, double>> from;  // x ascending, value; a value that is not finite is a gap
};

struct LineChart {
  std::string title, x_name, y_name;
  std::vector<ChartSeries> series;  // at most three
  std::vector<ChartLevel> levels;
  std::vector<std::pair<double, std::string>> marks;  // vertical lines with a label each
  bool from_zero = false;                             // the y axis
};

// The size of the picture does not depend on the number of points: with many, each column of pixels shows the
// minimum and maximum.
std::string line_chart_svg(const LineChart& chart);

}  // namespace sailor
