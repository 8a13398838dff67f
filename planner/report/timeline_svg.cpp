#include "planner/report/timeline_svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "planner/report/svg_axis.h"
#include "planner/report/timeline_pipelines.h"
#include "planner/report/timeline_svg_row.h"

namespace sailor {
namespace {

constexpr double kTimelineWidth = 1280, kTimelineRight = 24;
constexpr double kLabelSize = 11;     // px; rows with less height get smaller labels
constexpr int kMostRows = 256;        // more pipelines than fit are counted, not drawn
constexpr double kRowsHeight = 640;   // aimed at
constexpr size_t kMostLetters = 180;  // of the line below the title
constexpr size_t kMostTitles = 3000;  // bars that have a text of their own when pointed at

// Explicit colours in both schemes: not every renderer knows variables.
constexpr const char* kTimelineStyle = R"(<style>
.tl-bg{fill:#fff}.tl-idle{fill:#e8eaed}.tl-grid{stroke:#9aa0a6;stroke-opacity:.45}
.tl-text{fill:#202124;font-family:system-ui,'DejaVu Sans',Helvetica,Arial,sans-serif}.tl-soft{fill:#5f6368}
.tl-f{fill:#0072b2}.tl-b{fill:#e69f00}.tl-s{fill:#aa3377}.tl-u{fill:#009e73}
.tl-on-f{fill:#fff}.tl-on-b,.tl-on-p{fill:#202124}
@media (prefers-color-scheme:dark){
.tl-bg{fill:#17191c}.tl-idle{fill:#2c3035}.tl-text{fill:#e8eaed}.tl-soft{fill:#aab0b6}
.tl-f{fill:#56b4e9}.tl-s{fill:#dd88bb}.tl-u{fill:#33c39a}.tl-on-f{fill:#111}.tl-on-b{fill:#111}.tl-on-p{fill:#e8eaed}}
</style>
)";

struct TimeUnit {
  double seconds;
  const char* name;
};

TimeUnit unit_for(double span_s) {
  if (span_s >= 1) return {1, "s"};
  if (span_s >= 1e-3) return {1e-3, "ms"};
  return {1e-6, "us"};
}

struct DrawnRow {
  std::string name;
  std::vector<const TimelineEvent*> events;
};
struct DrawnBlock {
  std::string name;
  std::vector<DrawnRow> rows;
  int chunks = 1;
  double busy = 0;  // share of all its rows, over the iteration
};

std::vector<DrawnBlock> blocks_of(const Plan& plan, const Prediction& prediction,
                                  const std::vector<Timeline>& timelines, double span_s, size_t& left_out) {
  std::vector<DrawnBlock> blocks;
  size_t rows = 0;
  left_out = 0;
  for (const std::vector<int>& pipelines : alike_pipelines(plan, prediction, timelines)) {
    const PlanPipeline& pipeline = plan.pipelines[pipelines[0]];
    const int stages = num_gpu_groups(plan, pipeline);
    rows += static_cast<size_t>(stages);
    if (!blocks.empty() && rows > kMostRows) {
      left_out += pipelines.size();
      continue;
    }
    const Timeline& timeline = timelines[pipelines[0]];
    DrawnBlock block;
    block.chunks = std::max(1, plan.interleave);
    block.rows.resize(static_cast<size_t>(stages));
    for (int i = 0; i < stages; ++i) block.rows[i].name = gpu_group_name(plan, pipeline, i);
    for (const TimelineEvent& event : timeline.events) block.rows.at(event.stage).events.push_back(&event);
    double busy_s = 0;
    for (double s : timeline.stage_busy_s) busy_s += s;
    block.busy = busy_s / (span_s * stages);
    block.name = fmt::format("{}: {} microbatches of {}, busy {:.0f} %", pipelines_name(pipelines),
                             pipeline.microbatches, microbatch_of(plan, pipeline), 100 * block.busy);
    blocks.push_back(std::move(block));
  }
  return blocks;
}

std::string text(double x, double y, double size, const std::string& what, const char* more = "") {
  return fmt::format(R"(<text class="tl-text{}" x="{:.1f}" y="{:.1f}" font-size="{:g}">{}</text>)"
                     "\n",
                     more, x, y, size, xml_escaped(what));
}

std::string shortened(const std::string& line) {
  return line.size() <= kMostLetters ? line : line.substr(0, kMostLetters - 3) + "...";
}

// What is drawn, counted.
struct Extent {
  size_t rows = 0, name_length = 0, bars = 0;
  bool weights = false, sync = false, update = false;
};

std::string legend(double x, double y, const Extent& extent, int chunks) {
  std::string out;
  const auto entry = [&](const char* mark, const std::string& name) {
    out += fmt::format(R"(<rect class="{}" x="{:.1f}" y="{:.1f}" width="14" height="12" rx="2"/>)", mark, x,
                       y - 10);
    out += text(x + 19, y, 12, name);
    x += 19 + 6.7 * static_cast<double>(name.size()) + 22;
  };
  entry("tl-f", "forward");
  entry("tl-b", chunks > 1       ? "backward (later chunks fainter)"
                : extent.weights ? "backward (gradients of weights fainter)"
                                 : "backward");
  entry("tl-idle", "waiting (bubble)");
  if (extent.sync) entry("tl-s", "gradient sync");
  if (extent.update) entry("tl-u", "update");
  return out;
}

Extent extent_of(const std::vector<DrawnBlock>& blocks) {
  Extent out;
  for (const DrawnBlock& block : blocks)
    for (const DrawnRow& row : block.rows) {
      ++out.rows;
      out.bars += row.events.size();
      out.name_length = std::max(out.name_length, row.name.size());
      for (const TimelineEvent* event : row.events) {
        out.sync = out.sync || event->kind == TimelineEvent::Kind::sync;
        out.update = out.update || event->kind == TimelineEvent::Kind::update;
      }
    }
  return out;
}

// Blocks below each other from `y` on, which becomes the end of the last row. `dense`: were bars too thin to
// be drawn one by one?
std::string draw_rows(const std::vector<DrawnBlock>& blocks, SvgRowScale scale, double pitch,
                      double label_size, double span_s, double& y, bool& dense) {
  std::string out;
  for (const DrawnBlock& block : blocks) {
    out += text(16, y + 12, 12, block.name);
    y += 20;
    for (const DrawnRow& row : block.rows) {
      out += text(24, y + scale.height / 2 + label_size * 0.36, label_size, row.name, " tl-soft");
      out += fmt::format(R"(<rect class="tl-idle" x="{:.1f}" y="{:.2f}" width="{:.1f}" height="{:.2f}"/>)"
                         "\n",
                         scale.left, y, span_s * scale.per_s, scale.height);
      scale.top = y;
      dense = svg_row(row.events, block.chunks, scale, out) || dense;
      y += pitch;
    }
    y += 8;
  }
  y -= 4;
  return out;
}

std::string draw_time_axis(const SvgRowScale& scale, const TimeUnit& unit, double span_s, double top,
                           double bottom) {
  const double step = nice_step(span_s / unit.seconds, 12);
  std::string out;
  for (double t = 0; t <= span_s / unit.seconds * (1 + 1e-9); t += step) {
    const double x = scale.left + t * unit.seconds * scale.per_s;
    out += fmt::format(R"(<line class="tl-grid" x1="{0:.1f}" y1="{1:.1f}" x2="{0:.1f}" y2="{2:.1f}"/>)", x,
                       top + 16, bottom);
    out += fmt::format(
        R"(<text class="tl-text" x="{:.1f}" y="{:.1f}" font-size="11" text-anchor="middle">{}</text>)"
        "\n",
        x, bottom + 16, fmt::format("{:.6g}", std::abs(t) < step / 2 ? 0.0 : t));
  }
  return out +
         fmt::format(
             R"(<text class="tl-text tl-soft" x="{:.1f}" y="{:.1f}" font-size="11" text-anchor="end">time in {}</text>)"
             "\n",
             kTimelineWidth - kTimelineRight, bottom + 34, unit.name);
}

}  // namespace

std::string timeline_svg(const Plan& plan, const Prediction& prediction,
                         const std::vector<Timeline>& timelines) {
  if (timelines.size() != plan.pipelines.size())
    throw std::invalid_argument("timeline_svg: not one timeline per pipeline");
  double span_s = prediction.iteration_s;
  for (const Timeline& timeline : timelines) span_s = std::max(span_s, timeline.makespan_s);
  if (!(span_s > 0)) span_s = 1;
  size_t left_out = 0;
  const std::vector<DrawnBlock> blocks = blocks_of(plan, prediction, timelines, span_s, left_out);

  const Extent extent = extent_of(blocks);
  const double pitch =
      std::clamp(kRowsHeight / static_cast<double>(std::max<size_t>(extent.rows, 1)), 9.0, 34.0);
  const double label_size = std::min(kLabelSize, pitch * 0.85);
  SvgRowScale scale;
  scale.left = std::clamp(0.58 * label_size * static_cast<double>(extent.name_length) + 24, 90.0, 420.0);
  scale.per_s = (kTimelineWidth - kTimelineRight - scale.left) / span_s;
  scale.height = pitch - (pitch > 16 ? 4 : 1.5);
  scale.titles = extent.bars <= kMostTitles;

  constexpr double kTop = 84;
  double bottom = kTop;
  bool dense = false;
  const std::string body = draw_rows(blocks, scale, pitch, label_size, span_s, bottom, dense);
  const TimeUnit unit = unit_for(span_s);
  std::string grid = draw_time_axis(scale, unit, span_s, kTop, bottom);
  std::string notes;
  if (dense) notes += "where bars would be thinner than a pixel, heights are shares of time. ";
  if (left_out > 0) notes += fmt::format("{} more pipelines are not drawn.", left_out);
  if (!notes.empty()) grid += text(16, bottom + 34, 11, notes, " tl-soft");

  const double height = bottom + 46;
  const std::string title = fmt::format("{}: one iteration of {:.4g} {}", plan.model,
                                        prediction.iteration_s / unit.seconds, unit.name);
  std::string out = fmt::format(
      R"(<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {0:g} {1:.0f}" width="{0:g}" height="{1:.0f}" role="img" aria-label="{2}">)"
      "\n<title>{2}</title>\n",
      kTimelineWidth, height, xml_escaped(title));
  out += kTimelineStyle;
  out += fmt::format(R"(<rect class="tl-bg" width="{:g}" height="{:.0f}"/>)"
                     "\n",
                     kTimelineWidth, height);
  out += text(16, 30, 18, title) + text(16, 50, 12, shortened(summary(plan)), " tl-soft");
  out += legend(16, 74, extent, std::max(1, plan.interleave));
  return out + body + grid + "</svg>\n";
}

}  // namespace sailor
