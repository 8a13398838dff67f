// The picture of the front: see pareto_table.h.
#include <fmt/format.h>

#include <algorithm>

#include "planner/report/pareto_table.h"
#include "planner/report/plan_text.h"
#include "planner/report/svg_axis.h"
#include "planner/report/timeline_pipelines.h"

namespace sailor {
namespace {

constexpr double kFrontLeft = 90, kFrontTop = 50, kFrontWidth = 640, kFrontHeight = 400;
constexpr size_t kWidestLabel = 40;
constexpr double kCharacter = 6.2, kLine = 13;  // of a label, about

struct Box {
  double left, top, right, bottom;

  bool overlaps(const Box& other) const {
    return left < other.right && other.left < right && top < other.bottom && other.top < bottom;
  }
};

// Labels next to points, without overlaps: labels without room are omitted, and are only in the point's
// title. The ends of the front come first.
std::string labels_of(const std::vector<std::pair<double, double>>& at,
                      const std::vector<std::string>& texts) {
  std::vector<Box> taken;
  for (const auto& [x, y] : at) taken.push_back({x - 6, y - 6, x + 6, y + 6});
  std::vector<size_t> order;
  for (size_t i = 0; i < at.size(); ++i) order.push_back(i);
  if (order.size() > 2) std::rotate(order.begin() + 1, order.end() - 1, order.end());
  std::string svg;
  for (const size_t i : order) {
    const auto [x, y] = at[i];
    const double width = kCharacter * static_cast<double>(texts[i].size());
    // Below right, above left, beside: the front itself rises to the right.
    for (const auto& [dx, dy] : {std::pair(8.0, 16.0), {-8 - width, -6.0}, {10.0, 4.0}, {-10 - width, 4.0}}) {
      const Box box{x + dx, y + dy - kLine + 2, x + dx + width, y + dy + 2};
      const bool inside = box.left >= kFrontLeft && box.right <= kFrontLeft + kFrontWidth + 40 &&
                          box.top >= kFrontTop - kLine && box.bottom <= kFrontTop + kFrontHeight;
      if (!inside || std::any_of(taken.begin(), taken.end(), [&](const Box& b) { return box.overlaps(b); }))
        continue;
      taken.push_back(box);
      svg += fmt::format("<text class=\"label\" x=\"{:.1f}\" y=\"{:.1f}\" font-size=\"11\">{}</text>\n",
                         x + dx, y + dy, xml_escaped(texts[i]));
      break;
    }
  }
  return svg;
}

}  // namespace

std::string pareto_svg(const PlanningContext& context, const ParetoFront& front) {
  const double tokens = context.job.tokens_per_iteration();
  const ExpenseKind& kind = kind_of(front.expense);
  std::vector<std::pair<double, double>> points;  // (spent per iteration, tokens per second)
  double most_spent = 0, most_rate = 0;
  for (const ParetoPoint& point : front.points) {
    const Prediction& prediction = point.candidate.prediction;
    points.emplace_back(prediction.total(front.expense), tokens * prediction.iterations_per_s());
    most_spent = std::max(most_spent, points.back().first);
    most_rate = std::max(most_rate, points.back().second);
  }
  const SvgAxis spent = SvgAxis::from_zero(most_spent), rate = SvgAxis::from_zero(most_rate);
  const auto x = [&](double value) { return kFrontLeft + kFrontWidth * spent.along(value); };
  const auto y = [&](double value) { return kFrontTop + kFrontHeight * (1 - rate.along(value)); };

  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\" "
      "font-family=\"sans-serif\" font-size=\"13\">\n<style>text{{fill:#222}}.grid{{stroke:#ddd}}"
      ".front{{fill:none;stroke:#0072b2;stroke-width:2}}circle{{fill:#0072b2}}"
      "@media (prefers-color-scheme:dark){{text{{fill:#ddd}}.grid{{stroke:#444}}.front{{stroke:#56b4e9}}"
      "circle{{fill:#56b4e9}}}}</style>\n<text x=\"{2}\" y=\"28\" font-size=\"17\">Throughput against {4}: "
      "{3}"
      "</text>\n",
      kFrontLeft + kFrontWidth + 40, kFrontTop + kFrontHeight + 60, kFrontLeft,
      xml_escaped(context.job.model.name), kind.name);
  for (int i = 0; i < spent.marks(); ++i)
    svg += fmt::format(
        "<line class=\"grid\" x1=\"{0:.1f}\" y1=\"{1}\" x2=\"{0:.1f}\" y2=\"{2}\"/>"
        "<text x=\"{0:.1f}\" y=\"{3}\" text-anchor=\"middle\">{4:.6g}</text>\n",
        x(spent.mark(i)), kFrontTop, kFrontTop + kFrontHeight, kFrontTop + kFrontHeight + 18, spent.mark(i));
  for (int i = 0; i < rate.marks(); ++i)
    svg += fmt::format(
        "<line class=\"grid\" x1=\"{1}\" y1=\"{0:.1f}\" x2=\"{2}\" y2=\"{0:.1f}\"/>"
        "<text x=\"{3}\" y=\"{4:.1f}\" text-anchor=\"end\">{5:.6g}</text>\n",
        y(rate.mark(i)), kFrontLeft, kFrontLeft + kFrontWidth, kFrontLeft - 8, y(rate.mark(i)) + 4,
        rate.mark(i));
  std::string path;
  for (const auto& [point_spent, point_rate] : points)
    path += path.empty() ? fmt::format("M{:.1f} {:.1f}", x(point_spent), y(point_rate))
                         : fmt::format("H{:.1f}V{:.1f}", x(point_spent), y(point_rate));
  if (!path.empty()) svg += fmt::format("<path class=\"front\" d=\"{}\"/>\n", path);
  for (size_t i = 0; i < points.size(); ++i)
    svg += fmt::format(
        "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"5\"><title>{}: {:.4g} s, {:.4g} {} per iteration</title>"
        "</circle>\n",
        x(points[i].first), y(points[i].second), xml_escaped(gpus_by_type(front.points[i].candidate.plan)),
        front.points[i].candidate.prediction.iteration_s, points[i].first, kind.unit);
  std::vector<std::pair<double, double>> at;
  std::vector<std::string> labels;
  for (size_t i = 0; i < points.size(); ++i) {
    at.emplace_back(x(points[i].first), y(points[i].second));
    labels.push_back(cut_to(gpus_by_type(front.points[i].candidate.plan), kWidestLabel));
  }
  svg += labels_of(at, labels);
  svg += fmt::format(
      "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{} per iteration</text>\n"
      "<text transform=\"translate(18 {}) rotate(-90)\" text-anchor=\"middle\">tokens per second</text>\n"
      "</svg>\n",
      kFrontLeft + kFrontWidth / 2, kFrontTop + kFrontHeight + 44, kind.unit, kFrontTop + kFrontHeight / 2);
  return svg;
}

}  // namespace sailor
