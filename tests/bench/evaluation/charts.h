// Charts of results as self-contained SVG: bars in groups, and lines over two logarithmic axes. Readable on
// light and dark backgrounds. Pure; throw std::logic_error for values that are not finite.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace sailor::bench {

struct Bar {
  double value = 0;
  bool counted = true;  // false: drawn pale
};
struct BarSeries {
  std::string name;                      // for the legend
  std::vector<std::optional<Bar>> bars;  // one per group; nothing: no bar
};
struct BarChart {
  std::string title, unit;
  std::vector<std::string> groups;
  std::vector<BarSeries> series;
  std::optional<double> line = {};  // a horizontal line, e.g. at 1
  bool decades = false;             // a logarithmic axis; values > 0

  // Groups and series are created in the order of their first use.
  void add(const std::string& group, const std::string& one, Bar bar);

  std::string svg() const;
};

struct LineSeries {
  std::string name;
  std::vector<std::pair<double, double>> points;  // > 0, ascending in the first
  bool dashed = false;
  size_t colour = 0;
};
struct LogLogChart {
  std::string title, x_name, y_name;
  std::vector<LineSeries> series;

  std::string svg() const;  // marks on the x axis are at the points
};

}  // namespace sailor::bench
