#include "planner/report/html_report.h"

#include <fmt/format.h>

#include "planner/report/html_page.h"
#include "planner/report/memory_table.h"
#include "planner/report/timeline_pipelines.h"
#include "planner/report/timeline_svg.h"

namespace sailor {
namespace {

std::string seconds(double s) {
  if (s == 0) return "0";
  if (s >= 1) return fmt::format("{:.4g} s", s);
  if (s >= 1e-3) return fmt::format("{:.4g} ms", s * 1e3);
  return fmt::format("{:.4g} us", s * 1e6);
}

std::string row(const char* cell, const std::vector<std::string>& cells) {
  std::string out = "<tr>";
  for (const std::string& text : cells) out += fmt::format("<{0}>{1}</{0}>", cell, text);
  return out + "</tr>\n";
}

std::string prediction_table(const Prediction& p) {
  std::string out = "<h2>Prediction</h2>\n<table>\n";
  const auto share = [&](double s) {
    return p.iteration_s > 0 ? fmt::format("{:.1f} %", 100 * s / p.iteration_s) : std::string();
  };
  out += row("td", {"one iteration", "<b>" + seconds(p.iteration_s) + "</b>",
                    fmt::format("{:.4g} iterations/s", p.iterations_per_s())});
  out += row("td", {"pipeline (the slowest)", seconds(p.pipeline_s), share(p.pipeline_s)});
  out += row("td", {"gradient sync not hidden", seconds(p.sync_s), share(p.sync_s)});
  out += row("td", {"update", seconds(p.update_s), share(p.update_s)});
  out += row("td", {"overhead", seconds(p.overhead_s), share(p.overhead_s)});
  out += row("td", {"cost of an iteration", fmt::format("<b>{:.4g} USD</b>", p.usd_per_iteration()),
                    fmt::format("compute {:.4g}, transfer {:.4g}", p.compute_usd, p.transfer_usd)});
  out += row("td", {"fullest GPU", memory_unit(p).text(p.peak_memory_bytes()) + " " + memory_unit(p).name,
                    p.fits ? "every stage fits" : "<span class=\"bad\">does not fit</span>"});
  return out + "</table>\n";
}

std::string first_cell(const Plan& plan, const std::vector<int>& pipelines, size_t entry) {
  const PlanStage& stage = plan.pipelines[pipelines[0]].stages[entry];
  return xml_escaped(fmt::format("{}, stage {}: {} x{}, layers {}-{}", pipelines_name(pipelines), entry,
                                 stage.gpu_type, stage.tp, stage.first_layer, stage.end_layer - 1));
}

std::string stage_row(const std::string& name, const StagePrediction& s) {
  return row("td", {name, seconds(s.forward_s), seconds(s.backward_s), seconds(s.send_forward_s),
                    seconds(s.send_backward_s), seconds(s.sync_s), seconds(s.update_s),
                    fmt::format("{}", s.in_flight), fmt::format("{:.0f} %", 100 * s.busy_fraction)});
}

std::string memory_row(const std::string& name, const StagePrediction& s, const MemoryUnit& unit) {
  const int64_t total = s.memory.total();
  const double share =
      s.capacity_bytes > 0 ? static_cast<double>(total) / static_cast<double>(s.capacity_bytes) : 0;
  std::vector<std::string> cells = {
      name, fmt::format("<b{}>{}</b>", total > s.capacity_bytes ? " class=\"bad\"" : "", unit.text(total)),
      unit.text(s.capacity_bytes),
      fmt::format("{:.0f} %<span class=\"of\"><i style=\"width:{:.0f}%\"></i></span>", 100 * share,
                  100 * (share < 1 ? share : 1))};
  for (const MemorySource& source : memory_sources()) cells.push_back(unit.text(s.memory.*source.bytes));
  return row("td", cells);
}

}  // namespace

std::string html_report(const Plan& plan, const Prediction& prediction,
                        const std::vector<Timeline>& timelines, const std::vector<std::string>& notes) {
  std::vector<size_t> base;  // of a pipeline's first stage in prediction.stages
  size_t next = 0;
  for (const PlanPipeline& pipeline : plan.pipelines) {
    base.push_back(next);
    next += pipeline.stages.size();
  }
  std::string times = row("th", {"stage", "forward", "backward", "send on", "send back", "gradient sync",
                                 "update", "in flight", "busy"});
  const MemoryUnit unit = memory_unit(prediction);
  std::vector<std::string> header = {fmt::format("stage, {} per GPU", unit.name), "total", "capacity",
                                     "used"};
  for (const MemorySource& source : memory_sources()) header.push_back(source.name);
  std::string memory = row("th", header);
  for (const std::vector<int>& pipelines : alike_pipelines(plan, prediction, timelines))
    for (size_t i = 0; i < plan.pipelines[pipelines[0]].stages.size(); ++i) {
      const StagePrediction& stage = prediction.stages.at(base[pipelines[0]] + i);
      const std::string name = first_cell(plan, pipelines, i);
      times += stage_row(name, stage);
      memory += memory_row(name, stage, unit);
    }

  const std::string title = (plan.model.empty() ? "prediction" : plan.model) + ": predicted iteration";
  std::string out = fmt::format("<h1>{}</h1>\n<p>{}</p>\n", xml_escaped(title), xml_escaped(summary(plan)));
  for (const std::string& note : notes) out += "<p>" + xml_escaped(note) + "</p>\n";
  out += prediction_table(prediction);
  if (!timelines.empty())
    out +=
        "<h2>Timeline</h2>\n<div class=\"wide\">\n" + timeline_svg(plan, prediction, timelines) + "</div>\n";
  out += "<h2>Memory by source</h2>\n<div class=\"wide\"><table>\n" + memory + "</table></div>\n";
  out += "<h2>Stages, one microbatch each</h2>\n<div class=\"wide\"><table>\n" + times + "</table></div>\n";
  return html_page(title, out);
}

}  // namespace sailor
