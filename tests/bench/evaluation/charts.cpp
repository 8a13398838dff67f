#include "tests/bench/evaluation/charts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <stdexcept>

#include "planner/report/svg_axis.h"
#include "planner/report/svg_colours.h"
#include "planner/report/timeline_pipelines.h"

namespace sailor::bench {
namespace {

constexpr double kPlotLeft = 70, kPlotTop = 44, kPlotHeight = 260;

// Wide enough for the longest name.
template <typename Series>
double legend_width(const std::vector<Series>& series) {
  size_t longest = 0;
  for (const Series& one : series) longest = std::max(longest, one.name.size());
  return 60 + 7.5 * static_cast<double>(longest);
}

std::string opening(const std::string& title, double plot_width, double legend_width, double height) {
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\" "
      "font-family=\"sans-serif\" font-size=\"13\">\n<style>text{{fill:#222}}.grid{{stroke:#ddd}}"
      ".rule{{stroke:#222;stroke-dasharray:4 4}}@media (prefers-color-scheme:dark){{text{{fill:#ddd}}"
      ".grid{{stroke:#444}}.rule{{stroke:#ddd}}}}</style>\n<text x=\"{2}\" y=\"24\" font-size=\"16\">{3}"
      "</text>\n",
      kPlotLeft + plot_width + legend_width, height, kPlotLeft, xml_escaped(title));
}

std::string legend_entry(size_t place, double plot_width, const std::string& mark, const std::string& name) {
  const double y = kPlotTop + 12 + 21 * static_cast<double>(place);
  return fmt::format("<g transform=\"translate({:.1f},{:.1f})\">{}<text x=\"26\" y=\"0\">{}</text></g>\n",
                     kPlotLeft + plot_width + 18, y, mark, xml_escaped(name));
}

std::string level(double y, double plot_width, const std::string& label) {
  return fmt::format(
      "<line class=\"grid\" x1=\"{0}\" y1=\"{1:.1f}\" x2=\"{2:.1f}\" y2=\"{1:.1f}\"/>"
      "<text x=\"{3}\" y=\"{4:.1f}\" text-anchor=\"end\">{5}</text>\n",
      kPlotLeft, y, kPlotLeft + plot_width, kPlotLeft - 8, y + 4, label);
}

std::string y_title(const std::string& text) {
  return fmt::format("<text transform=\"translate(16 {}) rotate(-90)\" text-anchor=\"middle\">{}</text>\n",
                     kPlotTop + kPlotHeight / 2, xml_escaped(text));
}

double finite(double value) {
  if (!std::isfinite(value)) throw std::logic_error("a chart of a value that is not finite");
  return value;
}

// Powers of ten that enclose the data.
struct Decades {
  double low = 0, high = 1;

  explicit Decades(const std::vector<double>& values) {
    if (values.empty()) return;
    const auto [least, most] = std::minmax_element(values.begin(), values.end());
    low = std::floor(std::log10(*least) + 1e-9);
    high = std::max(low + 1, std::ceil(std::log10(*most) - 1e-9));
  }
  double along(double value) const { return (std::log10(value) - low) / (high - low); }
};

std::string decade_levels(const Decades& rows, double plot_width) {
  std::string out;
  for (double decade = rows.low; decade <= rows.high; ++decade)
    out += level(kPlotTop + kPlotHeight * (1 - rows.along(std::pow(10, decade))), plot_width,
                 fmt::format("{:g}", std::pow(10, decade)));
  return out;
}

}  // namespace

void BarChart::add(const std::string& group, const std::string& one, Bar bar) {
  size_t at = static_cast<size_t>(std::find(groups.begin(), groups.end(), group) - groups.begin());
  if (at == groups.size()) {
    groups.push_back(group);
    for (BarSeries& some : series) some.bars.emplace_back();
  }
  auto found =
      std::find_if(series.begin(), series.end(), [&](const BarSeries& some) { return some.name == one; });
  if (found == series.end())
    found = series.insert(found, {one, std::vector<std::optional<Bar>>(groups.size())});
  found->bars[at] = bar;
}

std::string BarChart::svg() const {
  constexpr double kBar = 15, kGap = 26;
  std::vector<double> values;
  if (line) values.push_back(*line);
  for (const BarSeries& one : series)
    for (const std::optional<Bar>& bar : one.bars)
      if (bar) values.push_back(finite(bar->value));
  const Decades rows(decades ? values : std::vector<double>{});
  const double most = values.empty() ? 0 : *std::max_element(values.begin(), values.end());
  const SvgAxis axis = SvgAxis::from_zero(most > 0 ? most : 1);
  const auto y = [&](double value) {
    return kPlotTop + kPlotHeight * (1 - (decades ? rows.along(value) : axis.along(value)));
  };

  // The width of a group depends on its number of bars.
  std::string bars;
  double x = kPlotLeft + kGap / 2;
  for (size_t group = 0; group < groups.size(); ++group) {
    const double from = x;
    for (size_t i = 0; i < series.size(); ++i) {
      const std::optional<Bar>& bar = series[i].bars.at(group);
      if (!bar) continue;
      bars += fmt::format(
          "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{}\" height=\"{:.1f}\" fill=\"{}\"{}><title>{}, {}: {:.4g}"
          "</title></rect>\n",
          x, y(bar->value), kBar - 2, kPlotTop + kPlotHeight - y(bar->value), chart_colour(i),
          bar->counted ? "" : " fill-opacity=\"0.35\"", xml_escaped(groups[group]),
          xml_escaped(series[i].name), bar->value);
      x += kBar;
    }
    x = std::max(x, from + 7.5 * static_cast<double>(groups[group].size()));
    bars += fmt::format("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n", (from + x) / 2,
                        kPlotTop + kPlotHeight + 18, xml_escaped(groups[group]));
    x += kGap;
  }
  const double width = std::max(200.0, x - kPlotLeft - kGap / 2);
  std::string out =
      opening(title, width, legend_width(series),
              std::max(kPlotTop + kPlotHeight + 34, kPlotTop + 20 + 21 * static_cast<double>(series.size())));
  for (int i = 0; !decades && i < axis.marks(); ++i)
    out += level(y(axis.mark(i)), width, fmt::format("{:.6g}", axis.mark(i)));
  if (decades) out += decade_levels(rows, width);
  out += bars;
  if (line)
    out += fmt::format("<line class=\"rule\" x1=\"{0}\" y1=\"{1:.1f}\" x2=\"{2:.1f}\" y2=\"{1:.1f}\"/>\n",
                       kPlotLeft, y(*line), kPlotLeft + width);
  for (size_t i = 0; i < series.size(); ++i)
    out += legend_entry(
        i, width, fmt::format("<rect y=\"-11\" width=\"14\" height=\"14\" fill=\"{}\"/>", chart_colour(i)),
        series[i].name);
  return out + y_title(unit) + "</svg>\n";
}

std::string LogLogChart::svg() const {
  constexpr double kPlotWidth = 520;
  std::vector<double> xs, ys;
  for (const LineSeries& one : series)
    for (const auto& [at, value] : one.points) {
      xs.push_back(finite(at));
      ys.push_back(finite(value));
    }
  const Decades rows(ys);
  double least = xs.empty() ? 1 : *std::min_element(xs.begin(), xs.end());
  double most = xs.empty() ? 2 : *std::max_element(xs.begin(), xs.end());
  if (most <= least) most = 2 * least;
  const auto x = [&](double value) {
    return kPlotLeft + 14 + (kPlotWidth - 28) * std::log(value / least) / std::log(most / least);
  };
  const auto y = [&](double value) { return kPlotTop + kPlotHeight * (1 - rows.along(value)); };

  std::string out = opening(title, kPlotWidth, legend_width(series), kPlotTop + kPlotHeight + 54);
  out += decade_levels(rows, kPlotWidth);
  for (double at : std::set<double>(xs.begin(), xs.end()))
    out += fmt::format("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{:g}</text>\n", x(at),
                       kPlotTop + kPlotHeight + 18, at);
  for (size_t i = 0; i < series.size(); ++i) {
    const LineSeries& one = series[i];
    const std::string stroke = fmt::format("stroke=\"{}\" stroke-width=\"2\"{}", chart_colour(one.colour),
                                           one.dashed ? " stroke-dasharray=\"6 4\"" : "");
    std::string path;
    for (const auto& [at, value] : one.points)
      path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : "L", x(at), y(value));
    if (!path.empty()) out += fmt::format("<path fill=\"none\" {} d=\"{}\"/>\n", stroke, path);
    for (const auto& [at, value] : one.points)
      out += fmt::format(
          "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4\" fill=\"{}\"><title>{}: {:.4g} at {:g}</title></circle>"
          "\n",
          x(at), y(value), chart_colour(one.colour), xml_escaped(one.name), value, at);
    out += legend_entry(i, kPlotWidth,
                        fmt::format("<line x1=\"0\" y1=\"-4\" x2=\"20\" y2=\"-4\" {}/>", stroke), one.name);
  }
  out += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n", kPlotLeft + kPlotWidth / 2,
                     kPlotTop + kPlotHeight + 42, xml_escaped(x_name));
  return out + y_title(y_name) + "</svg>\n";
}

}  // namespace sailor::bench
