#include "planner/report/html_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "planner/report/memory_table.h"
#include "planner/report/plan_drawing.h"
#include "planner/report/timeline_pipelines.h"
#include "planner/report/timeline_svg.h"

namespace sailor {
namespace {

constexpr const char* kPageStyle = R"(<style>
:root{color-scheme:light dark;--fg:#202124;--bg:#fff;--soft:#5f6368;--line:#dadce0;--bar:#0072b2;--bad:#b3261e;--good:#137333;
--g0:#0072b2;--g1:#e69f00;--g2:#009e73;--g3:#aa3377;--g4:#d55e00;--g5:#5f6368}
@media (prefers-color-scheme:dark){:root{--fg:#e8eaed;--bg:#17191c;--soft:#aab0b6;--line:#3c4046;--bar:#56b4e9;
--bad:#ff897d;--good:#81c995;--g0:#56b4e9;--g2:#33c39a;--g3:#dd88bb;--g5:#aab0b6}}
*{box-sizing:border-box}
body{font:14px/1.45 system-ui,sans-serif;color:var(--fg);background:var(--bg);margin:24px auto;max-width:1320px;
padding:0 20px;overflow-wrap:anywhere}
h1{font-size:22px;margin:0 0 4px}h2{font-size:16px;margin:28px 0 8px}p{margin:4px 0;color:var(--soft)}
.wide{overflow-x:auto;overflow-wrap:normal}table{border-collapse:collapse;font-variant-numeric:tabular-nums}
th,td{padding:3px 7px;text-align:right;white-space:nowrap;border-bottom:1px solid var(--line);vertical-align:top}
th{color:var(--soft);font-size:13px;font-weight:600;white-space:normal;vertical-align:bottom}th:first-child,td:first-child,.text{text-align:left}
.text{display:block;white-space:normal;min-width:180px;max-width:520px}
.bad{color:var(--bad);font-weight:600}.good{color:var(--good)}.aside{color:var(--soft)}.ours{font-weight:600}
th.word,td.word{text-align:left}td.long{white-space:normal;min-width:12em}
.of{display:inline-block;width:60px;height:9px;background:var(--line);vertical-align:middle;margin-left:8px}
.of i{display:block;height:9px;background:var(--bar)}
.parts{display:inline-flex;width:120px;height:9px;vertical-align:middle;background:var(--line)}
svg{max-width:100%;height:auto}.wide svg{min-width:860px}
.charts{display:flex;flex-wrap:wrap;gap:8px 24px}.charts .wide{flex:1 1 520px;min-width:0;max-width:700px}
.charts .wide svg{min-width:480px}
@media (max-width:600px){.few td{white-space:normal}.text{min-width:120px}}
.pipe{display:flex;flex-wrap:wrap;gap:8px;margin:8px 0 16px;align-items:stretch}
.pipe .who{flex:0 0 170px;color:var(--soft)}.pipe .who b{color:var(--fg);display:block}
.stage{border:1px solid var(--line);border-left-width:5px;border-radius:4px;padding:5px 10px;min-width:112px}
.stage b{display:block}.stage span{display:block;color:var(--soft);font-size:13px}
@media print{body{margin:0;max-width:none;padding:0;font-size:11px}h2{break-after:avoid}.wide{overflow:visible}
.wide svg,.charts .wide svg,.text{min-width:0}svg,.stage,tr{break-inside:avoid}
th,td{padding:2px;font-size:8.5px;white-space:normal}.of{width:24px;margin-left:3px}.parts{width:60px}
*{print-color-adjust:exact;-webkit-print-color-adjust:exact}}
</style>
)";

constexpr size_t kColours = 6;

std::string row(const char* cell, const HtmlRow& cells) {
  std::string out = "<tr>";
  for (const std::string& text : cells) out += fmt::format("<{0}>{1}</{0}>", cell, text);
  return out + "</tr>\n";
}

// A row per stage of each kind of pipelines, which begins with the stage's name.
std::vector<HtmlRow> stage_rows(const Plan& plan, const Prediction& prediction,
                                const std::vector<Timeline>& timelines,
                                const std::function<HtmlRow(const StagePrediction&)>& cells) {
  const std::vector<size_t> base = pipeline_bases(plan);
  std::vector<HtmlRow> rows;
  for (const std::vector<int>& pipelines : alike_pipelines(plan, prediction, timelines)) {
    const auto first = static_cast<size_t>(pipelines[0]);
    for (size_t i = 0; i < plan.pipelines[first].stages.size(); ++i) {
      const PlanStage& stage = plan.pipelines[first].stages[i];
      const std::string name =
          fmt::format("{}, stage {}: {} x{}, layers {}-{}", pipelines_name(pipelines), i, stage.gpu_type,
                      stage.shape.gpus(), stage.first_layer, stage.end_layer - 1);
      HtmlRow one = {html_text(name)};
      for (std::string& cell : cells(prediction.stages.at(base[first] + i))) one.push_back(std::move(cell));
      rows.push_back(std::move(one));
    }
  }
  return rows;
}

}  // namespace

std::string html_page(const std::string& title, const std::string& below, const std::string& body) {
  std::string out = "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n";
  out += "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n";
  // A browser asks for an icon otherwise.
  out += "<link rel=\"icon\" href=\"data:,\"/>\n";
  out += fmt::format("<title>{}</title>\n", xml_escaped(title)) + kPageStyle;
  out += fmt::format("</head>\n<body>\n<h1>{}</h1>\n{}", xml_escaped(title), html_paragraph(below));
  return out + body + "</body>\n</html>\n";
}

std::string html_table(const HtmlRow& head, const std::vector<HtmlRow>& rows) {
  std::string out = head.empty() ? "" : row("th", head);
  for (const HtmlRow& cells : rows) out += row("td", cells);
  return html_wide(fmt::format("<table{}>\n{}</table>", head.empty() ? " class=\"few\"" : "", out));
}

std::string html_wide(const std::string& content) {
  return "<div class=\"wide\">\n" + content + "</div>\n";
}

std::string html_section(const std::string& heading, const std::string& content) {
  return content.empty() ? "" : fmt::format("<h2>{}</h2>\n{}", xml_escaped(heading), content);
}

std::string html_paragraph(const std::string& text) {
  return text.empty() ? "" : "<p>" + xml_escaped(text) + "</p>\n";
}

std::string html_text(const std::string& text) {
  return "<span class=\"text\">" + xml_escaped(text) + "</span>";
}

std::string html_part(double part) {
  return fmt::format("{:.0f} %<span class=\"of\"><i style=\"width:{:.0f}%\"></i></span>", 100 * part,
                     100 * std::clamp(part, 0.0, 1.0));
}

std::string seconds_text(double s) {
  if (s == 0) return "0";
  if (s >= 1) return fmt::format("{:.4g} s", s);
  if (s >= 1e-3) return fmt::format("{:.4g} ms", s * 1e3);
  return fmt::format("{:.4g} us", s * 1e6);
}

std::string html_plan(const Plan& plan, const Prediction& prediction) {
  std::vector<std::string> types;  // by first appearance, for their colours
  std::string out;
  for (const DrawnPipeline& pipeline : drawn_pipelines(plan, prediction)) {
    out += fmt::format("<div class=\"pipe\"><div class=\"who\"><b>{}</b>{}, {} sequence{} in each</div>\n",
                       xml_escaped(pipeline.name), pipeline.work, pipeline.microbatch,
                       pipeline.microbatch == 1 ? "" : "s");
    for (const DrawnStage& stage : pipeline.stages) {
      auto it = std::find(types.begin(), types.end(), stage.gpu_type);
      if (it == types.end()) it = types.insert(types.end(), stage.gpu_type);
      out += fmt::format(
          "<div class=\"stage\" style=\"border-left-color:var(--g{})\"><b>{}</b>{}<span>{}</span>",
          static_cast<size_t>(it - types.begin()) % kColours, stage.name, xml_escaped(stage.gpus),
          stage.layers);
      if (!stage.recompute.empty()) out += fmt::format("<span>{}</span>", stage.recompute);
      if (!stage.zone.empty()) out += fmt::format("<span>{}</span>", xml_escaped(stage.zone));
      if (stage.busy_part > 0)
        out += fmt::format("<span>memory {:.0f} %, busy {:.0f} %</span>", 100 * stage.memory_part,
                           100 * stage.busy_part);
      out += "</div>\n";
    }
    out += "</div>\n";
  }
  return html_section("Plan", out);
}

std::string html_prediction(const Prediction& p) {
  const auto share = [&](double s) {
    return p.iteration_s > 0 ? fmt::format("{:.1f} %", 100 * s / p.iteration_s) : std::string();
  };
  const MemoryUnit unit = memory_unit(p);
  std::vector<HtmlRow> rows = {{"one iteration", "<b>" + seconds_text(p.iteration_s) + "</b>",
                                fmt::format("{:.4g} iterations/s", p.iterations_per_s())},
                               {"pipeline (the slowest)", seconds_text(p.pipeline_s), share(p.pipeline_s)},
                               {"gradient sync not hidden", seconds_text(p.sync_s), share(p.sync_s)},
                               {"update", seconds_text(p.update_s), share(p.update_s)},
                               {"overhead", seconds_text(p.overhead_s), share(p.overhead_s)}};
  for (const Expense expense : kExpenses) {
    const Spent& spent = p.spent[expense];
    if (!is_told(expense, spent.total() > 0)) continue;
    const ExpenseKind& kind = kind_of(expense);
    rows.push_back({fmt::format("{} of an iteration", kind.name),
                    fmt::format("<b>{:.4g} {}</b>", spent.total(), kind.unit),
                    kind.traffic_key == nullptr
                        ? ""
                        : fmt::format("compute {:.4g}, transfer {:.4g}", spent.gpus, spent.traffic)});
  }
  rows.push_back({"fullest GPU", unit.text(p.peak_memory_bytes()) + " " + unit.name,
                  p.fits ? "every stage fits" : "<span class=\"bad\">does not fit</span>"});
  return html_section("Prediction", html_table({}, rows));
}

std::string html_timeline(const Plan& plan, const Prediction& prediction,
                          const std::vector<Timeline>& timelines) {
  if (timelines.empty()) return "";
  return html_section("Timeline", html_wide(timeline_svg(plan, prediction, timelines)));
}

std::string html_memory(const Plan& plan, const Prediction& prediction,
                        const std::vector<Timeline>& timelines) {
  const MemoryUnit unit = memory_unit(prediction);
  HtmlRow head = {fmt::format("stage, {} per GPU", unit.name), "total", "capacity", "used"};
  for (const MemorySource& source : memory_sources()) head.push_back(source.name);
  return html_section(
      "Memory by source",
      html_table(
          head, stage_rows(plan, prediction, timelines, [&](const StagePrediction& s) {
            const int64_t total = s.memory.total();
            const double part =
                s.capacity_bytes > 0 ? static_cast<double>(total) / static_cast<double>(s.capacity_bytes) : 0;
            HtmlRow cells = {fmt::format("<b{}>{}</b>", total > s.capacity_bytes ? " class=\"bad\"" : "",
                                         unit.text(total)),
                             unit.text(s.capacity_bytes), html_part(part)};
            for (const MemorySource& source : memory_sources())
              cells.push_back(unit.text(s.memory.*source.bytes));
            return cells;
          })));
}

std::string html_stages(const Plan& plan, const Prediction& prediction,
                        const std::vector<Timeline>& timelines) {
  return html_section(
      "Stages, one microbatch each",
      html_table({"stage", "forward", "backward", "send on", "send back", "gradient sync", "update",
                  "in flight", "busy"},
                 stage_rows(plan, prediction, timelines, [](const StagePrediction& s) {
                   return HtmlRow{
                       seconds_text(s.forward_s),      seconds_text(s.backward_s),
                       seconds_text(s.send_forward_s), seconds_text(s.send_backward_s),
                       seconds_text(s.sync_s),         seconds_text(s.update_s),
                       fmt::format("{}", s.in_flight), fmt::format("{:.0f} %", 100 * s.busy_fraction)};
                 })));
}

}  // namespace sailor
