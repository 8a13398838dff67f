#include "planner/report/line_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "planner/report/svg_axis.h"
#include "planner/report/timeline_pipelines.h"

namespace sailor {
namespace {

constexpr double kChartLeft = 74, kChartTop = 62, kChartWidth = 610, kChartHeight = 230, kChartRight = 16,
                 kChartBottom = 50;
constexpr size_t kMostPoints = 1200;

constexpr const char* kChartStyle =
    "<style>.lc text{fill:#202124}.lc .soft{fill:#5f6368}.lc .grid{stroke:#dadce0}.lc .mark{stroke:#aa3377}"
    ".lc path,.lc .level{fill:none;stroke-width:1.6}.lc .s0{stroke:#0072b2}.lc .s1{stroke:#e69f00}"
    ".lc .s2{stroke:#009e73}.lc .level{stroke:#d55e00;stroke-dasharray:6 4}"
    ".lc circle.s0{fill:#0072b2}.lc circle.s1{fill:#e69f00}.lc circle.s2{fill:#009e73}"
    "@media (prefers-color-scheme:dark){.lc text{fill:#e8eaed}.lc .soft{fill:#aab0b6}.lc "
    ".grid{stroke:#3c4046}"
    ".lc .mark{stroke:#dd88bb}.lc .s0{stroke:#56b4e9}.lc circle.s0{fill:#56b4e9}.lc .s2{stroke:#33c39a}"
    ".lc circle.s2{fill:#33c39a}}</style>\n";

using Points = std::vector<std::pair<double, double>>;

Points finite(const Points& points) {
  Points out;
  for (const auto& [x, y] : points)
    if (std::isfinite(x) && std::isfinite(y)) out.emplace_back(x, y);
  return out;
}

// Of each run of points the least and the greatest, in their order.
Points thinned(const Points& points) {
  if (points.size() <= kMostPoints) return points;
  const size_t run = (2 * points.size() + kMostPoints - 1) / kMostPoints;
  Points out;
  for (size_t i = 0; i < points.size(); i += run) {
    const auto begin = points.begin() + static_cast<std::ptrdiff_t>(i);
    const auto end = points.begin() + static_cast<std::ptrdiff_t>(std::min(points.size(), i + run));
    auto [least, most] =
        std::minmax_element(begin, end, [](const auto& a, const auto& b) { return a.second < b.second; });
    if (most < least) std::swap(least, most);
    out.push_back(*least);
    if (most != least) out.push_back(*most);
  }
  return out;
}

struct Frame {
  SvgAxis x, y;

  double px(double value) const { return kChartLeft + kChartWidth * x.along(value); }
  double py(double value) const { return kChartTop + kChartHeight * (1 - y.along(value)); }
};

Frame frame_of(const LineChart& chart, const std::vector<Points>& series) {
  double x_least = std::numeric_limits<double>::infinity(), y_least = x_least;
  double x_most = -x_least, y_most = -y_least;
  for (const Points& points : series)
    for (const auto& [x, y] : points) {
      x_least = std::min(x_least, x);
      x_most = std::max(x_most, x);
      y_least = std::min(y_least, y);
      y_most = std::max(y_most, y);
    }
  for (const ChartLevel& level : chart.levels)
    for (const auto& [x, y] : finite(level.from)) {
      y_least = std::min(y_least, y);
      y_most = std::max(y_most, y);
    }
  if (!std::isfinite(x_least)) x_least = 0, x_most = 1;
  if (!std::isfinite(y_least)) y_least = 0, y_most = 1;
  Frame frame;
  frame.x = SvgAxis::between(x_least, x_most);
  frame.x.begin = x_least;  // steps need no round beginning and no empty end
  frame.x.end = std::max(x_most, std::nextafter(x_least, x_most + 1));
  frame.y = chart.from_zero ? SvgAxis::from_zero(y_most) : SvgAxis::between(y_least, y_most);
  return frame;
}

std::string grid(const LineChart& chart, const Frame& frame) {
  std::string out;
  for (int i = 0; i < frame.y.marks(); ++i) {
    const double y = frame.py(frame.y.mark(i));
    out += fmt::format(
        "<line class=\"grid\" x1=\"{0}\" y1=\"{1:.1f}\" x2=\"{2}\" y2=\"{1:.1f}\"/><text class=\"soft\" "
        "x=\"{3}\" y=\"{4:.1f}\" text-anchor=\"end\">{5:.6g}</text>\n",
        kChartLeft, y, kChartLeft + kChartWidth, kChartLeft - 8, y + 4,
        std::abs(frame.y.mark(i)) < frame.y.step / 2 ? 0.0 : frame.y.mark(i));
  }
  const double first = frame.x.step * std::ceil(frame.x.begin / frame.x.step - 1e-9);
  for (double x = first; x <= frame.x.end * (1 + 1e-12); x += frame.x.step)
    out += fmt::format("<text class=\"soft\" x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{:.7g}</text>\n",
                       frame.px(x), kChartTop + kChartHeight + 18, x);
  out += fmt::format(
      "<text class=\"soft\" x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>\n<text class=\"soft\" "
      "transform=\"translate(16 {}) rotate(-90)\" text-anchor=\"middle\">{}</text>\n",
      kChartLeft + kChartWidth, kChartTop + kChartHeight + 38, xml_escaped(chart.x_name),
      kChartTop + kChartHeight / 2, xml_escaped(chart.y_name));
  return out;
}

// A vertical line with its label; if there are many, short lines, and labels where there is room.
std::string marks(const LineChart& chart, const Frame& frame) {
  constexpr size_t kMany = 24;
  constexpr int kRows = 4, kRow = 12, kLetter = 7;
  std::array<double, kRows> taken_until{};  // in pixels, by row of words
  const double length = chart.marks.size() > kMany ? kRows * kRow : kChartHeight;
  std::string out;
  for (const auto& [x, word] : chart.marks) {
    if (x < frame.x.begin || x > frame.x.end) continue;
    const double px = frame.px(x);
    out += fmt::format(
        "<line class=\"mark\" x1=\"{0:.1f}\" y1=\"{1}\" x2=\"{0:.1f}\" "
        "y2=\"{2}\"><title>{3}</title></line>\n",
        px, kChartTop, kChartTop + length, xml_escaped(word));
    const auto row =
        std::find_if(taken_until.begin(), taken_until.end(), [&](double until) { return until <= px; });
    if (row == taken_until.end()) continue;
    *row = px + kLetter * static_cast<double>(word.size() + 1);
    out += fmt::format("<text x=\"{:.1f}\" y=\"{}\" font-size=\"11\">{}</text>\n", px + 3,
                       kChartTop + 10 + kRow * (row - taken_until.begin()), xml_escaped(word));
  }
  return out;
}

std::string legend(const LineChart& chart) {
  double x = kChartLeft;
  std::string out;
  const auto entry = [&](const std::string& shape, const std::string& name) {
    out += shape + fmt::format("<text x=\"{:.1f}\" y=\"48\">{}</text>\n", x + 26, xml_escaped(name));
    x += 26 + 7 * static_cast<double>(name.size()) + 20;
  };
  for (size_t i = 0; i < chart.series.size(); ++i)
    entry(chart.series[i].dots
              ? fmt::format("<circle class=\"s{}\" cx=\"{:.1f}\" cy=\"44\" r=\"3\"/>", i, x + 10)
              : fmt::format("<path class=\"s{}\" d=\"M{:.1f} 44h20\"/>", i, x),
          chart.series[i].name);
  for (const ChartLevel& level : chart.levels)
    entry(fmt::format("<path class=\"level\" d=\"M{:.1f} 44h20\"/>", x), level.name);
  return out;
}

// One path for each piece, so that each says its value.
std::string level_path(const ChartLevel& level, const Frame& frame) {
  std::string out;
  for (size_t i = 0; i < level.from.size(); ++i) {
    const auto [x, y] = level.from[i];
    if (!std::isfinite(x) || !std::isfinite(y)) continue;
    const double from = std::clamp(x, frame.x.begin, frame.x.end);
    const double to =
        i + 1 < level.from.size() ? std::clamp(level.from[i + 1].first, from, frame.x.end) : frame.x.end;
    out += fmt::format("<path class=\"level\" d=\"M{:.1f} {:.1f}H{:.1f}\"><title>{}: {:.6g}</title></path>\n",
                       frame.px(from), frame.py(y), frame.px(to), xml_escaped(level.name), y);
  }
  return out;
}

}  // namespace

std::string line_chart_svg(const LineChart& chart) {
  std::vector<Points> series;
  for (const ChartSeries& one : chart.series) series.push_back(thinned(finite(one.points)));
  const Frame frame = frame_of(chart, series);
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"lc\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" "
      "height=\"{1}\" font-family=\"system-ui,sans-serif\" font-size=\"12\" role=\"img\" "
      "aria-label=\"{2}\">\n<title>{2}</title>\n",
      kChartLeft + kChartWidth + kChartRight, kChartTop + kChartHeight + kChartBottom,
      xml_escaped(chart.title));
  svg += kChartStyle + fmt::format("<text x=\"{}\" y=\"22\" font-size=\"15\">{}</text>\n", kChartLeft,
                                   xml_escaped(chart.title));
  svg += legend(chart) + grid(chart, frame);
  svg += marks(chart, frame);
  for (const ChartLevel& level : chart.levels) svg += level_path(level, frame);
  for (size_t i = 0; i < series.size(); ++i) {
    std::string path;
    for (const auto& [x, y] : series[i]) {
      if (chart.series[i].dots || series[i].size() == 1)
        svg += fmt::format("<circle class=\"s{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\"/>\n", i, frame.px(x),
                           frame.py(y));
      else
        path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : "L", frame.px(x), frame.py(y));
    }
    if (!path.empty()) svg += fmt::format("<path class=\"s{}\" d=\"{}\"/>\n", i, path);
  }
  return svg + "</svg>\n";
}

}  // namespace sailor
