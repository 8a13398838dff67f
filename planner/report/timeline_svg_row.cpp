#include "planner/report/timeline_svg_row.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace sailor {
namespace {

using Kind = TimelineEvent::Kind;

constexpr double kThinnest = 1.5;    // px; rows whose mean bar is thinner show shares of time
constexpr double kBin = 2;           // px over which shares are taken
constexpr double kLevels = 24;       // of a share, so that equal neighbours join
constexpr double kSyncHeight = 0.3;  // of a row: gradient sync may overlap with the computation

bool is_compute(const TimelineEvent& event) {
  return event.kind == Kind::forward || event.kind == Kind::backward || event.kind == Kind::weights;
}

const char* style_of(Kind kind) {
  switch (kind) {
    case Kind::backward:
    case Kind::weights:
      return "tl-b";
    case Kind::sync:
      return "tl-s";
    case Kind::update:
      return "tl-u";
    default:
      return "tl-f";
  }
}

std::string title_of(const TimelineEvent& event, int chunks) {
  std::string name;
  if (event.kind == Kind::sync) name = "gradient sync";
  if (event.kind == Kind::update) name = "update";
  if (is_compute(event)) {
    name = fmt::format("{} of microbatch {}",
                       event.kind == Kind::forward    ? "forward"
                       : event.kind == Kind::backward ? "backward"
                                                      : "gradients of weights",
                       event.microbatch);
    if (chunks > 1) name += fmt::format(", chunk {}", event.chunk);
  }
  return fmt::format("<title>{}: {:.6g} s to {:.6g} s</title>", name, event.start_s, event.end_s);
}

void bar(const TimelineEvent& event, int chunks, const SvgRowScale& scale, std::string& out) {
  const double x = scale.left + event.start_s * scale.per_s;
  const double width = (event.end_s - event.start_s) * scale.per_s;
  const bool sync = event.kind == Kind::sync;
  const double height = sync ? scale.height * kSyncHeight : scale.height;
  const double y = scale.top + scale.height - height;
  // A hair of background between neighbours, where there is room for it.
  const double gap = width > 4 ? 0.6 : 0;
  out += fmt::format(R"(<rect class="{}" x="{:.2f}" y="{:.2f}" width="{:.2f}" height="{:.2f}")",
                     style_of(event.kind), x, y, std::max(width - gap, 0.05), height);
  if (event.kind == Kind::weights) out += R"( fill-opacity="0.60")";
  if (is_compute(event) && event.chunk > 0)
    out += fmt::format(R"( fill-opacity="{:.2f}")", 1 - 0.6 * event.chunk / (chunks - 1));
  out += scale.titles ? ">" + title_of(event, chunks) + "</rect>\n" : "/>\n";
  if (!is_compute(event)) return;
  const std::string number = fmt::format("{}", event.microbatch);
  const double size = std::min(11.0, scale.height * 0.8);
  if (size < 7 || width < 0.62 * size * static_cast<double>(number.size()) + 3) return;
  const bool faint = event.chunk > 0 && 2 * event.chunk >= chunks - 1;
  const char* style = faint ? "tl-on-p" : event.kind == Kind::forward ? "tl-on-f" : "tl-on-b";
  out += fmt::format(
      R"(<text class="{}" x="{:.2f}" y="{:.2f}" font-size="{:.3g}" font-family="sans-serif" text-anchor="middle" pointer-events="none">{}</text>)"
      "\n",
      style, x + (width - gap) / 2, scale.top + scale.height / 2 + size * 0.36, size, number);
}

// Share of each bin of kBin pixels that forwards fill, or backwards.
std::vector<double> shares(const std::vector<const TimelineEvent*>& events, bool forwards, double per_s) {
  std::vector<double> filled;
  for (const TimelineEvent* event : events) {
    if (!is_compute(*event) || (event->kind == Kind::forward) != forwards) continue;
    double at = event->start_s * per_s / kBin;
    const double end = event->end_s * per_s / kBin;
    if (filled.size() < std::ceil(end) + 1) filled.resize(static_cast<size_t>(std::ceil(end)) + 1, 0);
    while (at < end) {
      const double next = std::min(end, std::floor(at) + 1);
      filled[static_cast<size_t>(at)] += next - at;
      at = next;
    }
  }
  return filled;
}

// Rectangles from `low` to `high` share of the row's height, as one path; equal neighbours are one.
void area(const std::vector<double>& low, const std::vector<double>& high, const char* style,
          const SvgRowScale& scale, std::string& out) {
  const auto level = [](double share) { return std::round(std::clamp(share, 0.0, 1.0) * kLevels) / kLevels; };
  std::string path;
  for (size_t i = 0; i < high.size();) {
    size_t end = i + 1;
    while (end < high.size() && level(low[end]) == level(low[i]) && level(high[end]) == level(high[i])) ++end;
    const double from = level(low[i]), to = level(high[i]);
    if (to > from) {
      const double width = static_cast<double>(end - i) * kBin;
      path += fmt::format("M{:.1f} {:.2f}h{:g}v{:.2f}h{:g}z", scale.left + static_cast<double>(i) * kBin,
                          scale.top + scale.height * (1 - from), width, -scale.height * (to - from), -width);
    }
    i = end;
  }
  if (!path.empty()) out += fmt::format("<path class=\"{}\" d=\"{}\"/>\n", style, path);
}

}  // namespace

bool svg_row(const std::vector<const TimelineEvent*>& events, int chunks, const SvgRowScale& scale,
             std::string& out) {
  double filled = 0;
  size_t count = 0;
  for (const TimelineEvent* event : events)
    if (is_compute(*event)) {
      filled += (event->end_s - event->start_s) * scale.per_s;
      ++count;
    }
  const bool dense = count > 0 && filled < kThinnest * static_cast<double>(count);
  if (dense) {
    std::vector<double> forward = shares(events, true, scale.per_s);
    std::vector<double> backward = shares(events, false, scale.per_s);
    forward.resize(std::max(forward.size(), backward.size()), 0);
    backward.resize(forward.size(), 0);
    for (size_t i = 0; i < forward.size(); ++i) backward[i] += forward[i];
    area(std::vector<double>(forward.size(), 0), forward, "tl-f", scale, out);
    area(forward, backward, "tl-b", scale, out);
  }
  for (const TimelineEvent* event : events)
    if (!dense || !is_compute(*event)) bar(*event, chunks, scale, out);
  return dense;
}

}  // namespace sailor
