#include "planner/report/scatter_svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "planner/report/svg_colours.h"
#include "planner/report/timeline_pipelines.h"

namespace sailor {
namespace {

constexpr double kLeft = 80, kTop = 50, kSide = 480, kLegend = 230;

bool is_drawn(const Pair& pair) {
  return pair.predicted > 0 && pair.measured > 0 && std::isfinite(pair.predicted) &&
         std::isfinite(pair.measured);
}

// Both axes run from 10^low to 10^high.
struct Axes {
  double low = 0, high = 1;

  double along(double value) const { return (std::log10(value) - low) / (high - low) * kSide; }
  double x(double measured) const { return kLeft + along(measured); }
  double y(double predicted) const { return kTop + kSide - along(predicted); }
};

Axes axes_of(const std::vector<ScatterSeries>& series) {
  double least = std::numeric_limits<double>::infinity(), most = 0;
  for (const ScatterSeries& one : series)
    for (const Pair& pair : one.pairs) {
      if (!is_drawn(pair)) continue;
      least = std::min({least, pair.predicted, pair.measured});
      most = std::max({most, pair.predicted, pair.measured});
    }
  if (!(most > 0)) return {};
  Axes axes{std::floor(std::log10(least)), std::ceil(std::log10(most))};
  if (axes.high <= axes.low) axes.high = axes.low + 1;
  return axes;
}

// A line predicted = factor x measured, cut to the square.
std::string ratio_line(const Axes& axes, double factor, const char* style) {
  const double low = std::pow(10, axes.low), high = std::pow(10, axes.high);
  const double from = std::max(low, low / factor), to = std::min(high, high / factor);
  return fmt::format("<line class=\"{}\" x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\"/>\n", style,
                     axes.x(from), axes.y(from * factor), axes.x(to), axes.y(to * factor));
}

}  // namespace

std::string scatter_svg(const std::string& title, const std::string& unit,
                        const std::vector<ScatterSeries>& series) {
  const Axes axes = axes_of(series);
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\" "
      "font-family=\"sans-serif\" font-size=\"13\">\n<style>text{{fill:#222}}.axis{{stroke:#888}}"
      ".grid{{stroke:#ddd}}.exact{{stroke:#222}}.band{{stroke:#222;stroke-dasharray:4 4;opacity:.5}}"
      "@media (prefers-color-scheme:dark){{text{{fill:#ddd}}.grid{{stroke:#444}}.exact,.band{{stroke:#ddd}}}}"
      "</style>\n<text x=\"{2}\" y=\"28\" font-size=\"17\">{3}</text>\n",
      kLeft + kSide + kLegend, kTop + kSide + 60, kLeft, xml_escaped(title));
  for (double decade = axes.low; decade <= axes.high; ++decade) {
    const double value = std::pow(10, decade);
    svg += fmt::format(
        "<line class=\"grid\" x1=\"{0:.1f}\" y1=\"{1}\" x2=\"{0:.1f}\" y2=\"{2}\"/>"
        "<line class=\"grid\" x1=\"{3}\" y1=\"{4:.1f}\" x2=\"{5}\" y2=\"{4:.1f}\"/>\n"
        "<text x=\"{0:.1f}\" y=\"{6}\" text-anchor=\"middle\">{7:g}</text>"
        "<text x=\"{8}\" y=\"{9:.1f}\" text-anchor=\"end\">{7:g}</text>\n",
        axes.x(value), kTop, kTop + kSide, kLeft, axes.y(value), kLeft + kSide, kTop + kSide + 18, value,
        kLeft - 8, axes.y(value) + 4);
  }
  svg += fmt::format("<rect class=\"axis\" fill=\"none\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>\n",
                     kLeft, kTop, kSide, kSide);
  svg += ratio_line(axes, 1, "exact") + ratio_line(axes, 1.1, "band") + ratio_line(axes, 1 / 1.1, "band");
  for (size_t i = 0; i < series.size(); ++i) {
    const char* colour = chart_colour(i);
    svg += fmt::format("<g fill=\"{}\" fill-opacity=\"0.55\">\n", colour);
    size_t drawn = 0;
    for (const Pair& pair : series[i].pairs) {
      if (!is_drawn(pair)) continue;
      ++drawn;
      svg += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\"/>\n", axes.x(pair.measured),
                         axes.y(pair.predicted));
    }
    const double y = kTop + 14 + 22 * static_cast<double>(i);
    svg += fmt::format(
        "</g>\n<circle cx=\"{}\" cy=\"{}\" r=\"5\" fill=\"{}\"/><text x=\"{}\" y=\"{}\">{} ({})</text>\n",
        kLeft + kSide + 20, y - 4, colour, kLeft + kSide + 32, y, xml_escaped(series[i].name), drawn);
  }
  svg += fmt::format(
      "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">measured, {}</text>\n"
      "<text transform=\"translate(18,{}) rotate(-90)\" text-anchor=\"middle\">predicted, "
      "{}</text>\n</svg>\n",
      kLeft + kSide / 2, kTop + kSide + 44, xml_escaped(unit), kTop + kSide / 2, xml_escaped(unit));
  return svg;
}

}  // namespace sailor
