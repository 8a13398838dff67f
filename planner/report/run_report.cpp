#include "planner/report/run_report.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <filesystem>
#include <limits>
#include <map>

#include "planner/plan/feature_text.h"
#include "planner/plan/rank_layout.h"
#include "planner/report/html_parts.h"
#include "planner/report/line_chart.h"
#include "planner/report/pareto_table.h"
#include "planner/report/plan_text.h"
#include "planner/report/timeline_pipelines.h"

namespace sailor {
namespace {

constexpr size_t kMostRanks = 128, kMostEvents = 500;

std::optional<double> predicted_iteration_s(const RunHistory& history, const PlanOutlook* predicted) {
  if (history.plan.prediction) return history.plan.prediction->iteration_s;
  if (predicted != nullptr) return predicted->prediction.iteration_s;
  return history.summary ? history.summary->predicted_iteration_s : std::nullopt;
}

std::optional<double> tokens_per_step(const RunHistory& history) {
  for (const StepMetrics& step : history.steps)
    if (step.tokens_per_s && step.step_s && *step.step_s > 0) return *step.tokens_per_s * *step.step_s;
  return std::nullopt;
}

// Tokens per second as each plan of the run promised them; empty where none did.
ChartLevel promised_rate(const RunHistory& history, const PlanOutlook* predicted) {
  ChartLevel out{"predicted", {}};
  const std::optional<double> tokens = tokens_per_step(history);
  if (!tokens) return out;
  std::vector<PlanPromise> promises = history.promises;
  if (promises.empty()) promises.emplace_back();
  if (!promises.back().iteration_s) promises.back().iteration_s = predicted_iteration_s(history, predicted);
  bool any = false;
  for (const PlanPromise& promise : promises) {
    const bool known = promise.iteration_s && *promise.iteration_s > 0;
    any = any || known;
    out.from.emplace_back(static_cast<double>(promise.steps_done),
                          known ? *tokens / *promise.iteration_s : std::numeric_limits<double>::quiet_NaN());
  }
  if (!any) out.from.clear();
  return out;
}

std::string number_text(const std::optional<double>& value, const char* format) {
  return value ? fmt::format(fmt::runtime(format), *value) : "-";
}

std::string seconds_or_dash(const std::optional<double>& value) {
  return value ? seconds_text(*value) : "-";
}

std::string result_table(const RunHistory& history, const PlanOutlook* predicted) {
  std::vector<HtmlRow> rows;
  const auto add = [&](const char* name, const std::string& value, const std::string& more = "") {
    rows.push_back({name, "<b>" + xml_escaped(value) + "</b>", html_text(more)});
  };
  const RunSummary end = history.summary.value_or(RunSummary{});
  add("state", history.summary ? end.status : "not ended", end.error);
  if (!end.moved.empty()) add("nodes", "other nodes", end.moved);
  const int64_t steps = history.steps.empty() ? end.steps : history.steps.back().step;
  add("steps", fmt::format("{}", steps),
      history.summary ? fmt::format("in {} of training", seconds_text(end.training_s)) : "");
  if (!history.steps.empty()) {
    add("loss", number_text(history.steps.back().loss, "{:.4f}"),
        fmt::format("{} at the first step", number_text(history.steps.front().loss, "{:.4f}")));
    for (const auto& [name, loss] : end.validation)
      add("validation loss", number_text(loss, "{:.4f}"),
          fmt::format("{}perplexity {:.1f}", name.empty() ? "" : name + ": ", std::exp(loss)));
  }
  const std::optional<double> promised = predicted_iteration_s(history, predicted);
  std::string against = promised ? fmt::format("predicted {}", seconds_text(*promised)) : "";
  if (promised && end.measured_iteration_s)
    against += fmt::format(", error {:+.1f} %", 100 * (*promised / *end.measured_iteration_s - 1));
  if (end.emulated) against += " (emulated GPU types)";
  add("iteration", end.measured_iteration_s ? seconds_text(*end.measured_iteration_s) + " (median)" : "-",
      against);
  add("throughput", end.tokens_per_s ? rate_text(*end.tokens_per_s) + " tokens/s" : "-",
      end.mfu ? fmt::format("MFU {:.1f} %", 100 * *end.mfu) : "");
  add("ranks", fmt::format("{}", num_ranks(history.plan)), gpus_by_type(history.plan));
  if (!history.changes.empty()) add("changes of plan", fmt::format("{}", history.changes.size()), "");
  return html_section("Result", html_table({}, rows));
}

std::vector<std::pair<double, std::string>> change_marks(const RunHistory& history) {
  std::vector<std::pair<double, std::string>> marks;
  for (const PlanChange& change : history.changes)
    marks.emplace_back(static_cast<double>(change.steps_done),
                       fmt::format("generation {}", change.generation));
  return marks;
}

std::string training_charts(const RunHistory& history, const PlanOutlook* predicted) {
  if (history.steps.empty()) return "";
  LineChart loss, rate;
  loss.title = "Loss";
  rate.title = "Throughput";
  loss.x_name = rate.x_name = "step";
  loss.y_name = "nats per token";
  rate.y_name = "tokens per second";
  rate.from_zero = true;
  loss.marks = rate.marks = change_marks(history);
  ChartSeries training{"training", {}}, measured{"measured", {}};
  std::map<std::string, ChartSeries> validation;  // by name of the set
  for (const StepMetrics& step : history.steps) {
    const auto x = static_cast<double>(step.step);
    if (step.loss) training.points.emplace_back(x, *step.loss);
    for (const auto& [name, value] : step.validation)
      validation.try_emplace(name, ChartSeries{name.empty() ? "validation" : "validation " + name, {}, true})
          .first->second.points.emplace_back(x, value);
    if (step.tokens_per_s) measured.points.emplace_back(x, *step.tokens_per_s);
  }
  loss.series = {training};
  for (auto& [name, series] : validation) loss.series.push_back(std::move(series));
  rate.series = {measured};
  if (const ChartLevel level = promised_rate(history, predicted); !level.from.empty()) rate.levels = {level};
  return html_section("Training", "<div class=\"charts\">\n" + html_wide(line_chart_svg(loss)) +
                                      html_wide(line_chart_svg(rate)) + "</div>\n");
}

// Predicted bytes of each rank, in the order of ranks; empty without a prediction.
std::vector<std::pair<int64_t, int64_t>> predicted_memory(const Plan& plan, const PlanOutlook* predicted) {
  std::vector<std::pair<int64_t, int64_t>> out;  // total, capacity
  if (predicted == nullptr) return out;
  const std::vector<size_t> base = pipeline_bases(plan);
  const RankLayout layout(plan);
  for (const RankSlot& slot : layout.slots()) {
    const StagePrediction& stage = predicted->prediction.stages.at(base[static_cast<size_t>(slot.pipeline)] +
                                                                   static_cast<size_t>(slot.stage));
    out.emplace_back(stage.memory.total(), stage.capacity_bytes);
  }
  return out;
}

std::string rank_memory_table(const RunHistory& history, const PlanOutlook* predicted) {
  const auto expected = predicted_memory(history.plan, predicted);
  std::vector<RankSummary> ranks = history.summary ? history.summary->ranks : std::vector<RankSummary>();
  if (ranks.empty() && expected.empty()) return "";
  const bool measured = !ranks.empty();
  if (!measured) {
    const RankLayout layout(history.plan);
    for (const RankSlot& slot : layout.slots())
      ranks.push_back({.rank = slot.rank,
                       .node = slot.node,
                       .gpu_type = stage_of(history.plan, slot).gpu_type,
                       .pipeline = slot.pipeline,
                       .stage = slot.stage});
  }
  const auto mib = [](int64_t bytes) {
    return fmt::format("{:.0f}", static_cast<double>(bytes) / (1 << 20));
  };
  std::vector<HtmlRow> rows;
  for (const RankSummary& rank : ranks) {
    if (rows.size() == kMostRanks) break;
    const bool known = rank.rank >= 0 && static_cast<size_t>(rank.rank) < expected.size();
    const auto [total, capacity] =
        known ? expected[static_cast<size_t>(rank.rank)] : std::pair<int64_t, int64_t>{0, 0};
    rows.push_back(
        {fmt::format("{}", rank.rank), xml_escaped(rank.node), xml_escaped(rank.gpu_type),
         fmt::format("{}", rank.pipeline), fmt::format("{}", rank.stage), known ? mib(total) : "-",
         measured ? mib(rank.peak_rss_bytes) : "-",
         known && measured && rank.peak_rss_bytes > 0
             ? fmt::format("{:+.1f} %",
                           100 * (static_cast<double>(total) / static_cast<double>(rank.peak_rss_bytes) - 1))
             : "-",
         known && capacity > 0 ? html_part(static_cast<double>(total) / static_cast<double>(capacity))
                               : "-"});
  }
  std::string out = html_table({"rank", "node", "GPU type", "pipeline", "stage", "predicted MiB",
                                "measured MiB", "error", "of the GPU"},
                               rows);
  if (ranks.size() > rows.size())
    out += html_paragraph(fmt::format("and {} more ranks", ranks.size() - rows.size()));
  return html_section("Memory of each rank", out);
}

std::string front_section(const PlanningContext* context, const PlanOutlook* predicted) {
  if (context == nullptr || predicted == nullptr || !predicted->front || predicted->front->points.empty())
    return "";
  const double tokens = context->job.tokens_per_iteration();
  const Expense expense = predicted->front->expense;
  const ExpenseKind& kind = kind_of(expense);
  std::vector<HtmlRow> rows;
  for (const ParetoPoint& point : predicted->front->points) {
    const Prediction& p = point.candidate.prediction;
    const Plan& plan = point.candidate.plan;
    rows.push_back({xml_escaped(gpus_by_type(plan)), num_stages_text(plan),
                    fmt::format("{}", plan.pipelines.size()), tp_text(plan), feature_text(plan),
                    microbatch_text(plan), seconds_text(p.iteration_s),
                    rate_text(tokens * p.iterations_per_s()), fmt::format("{:.4g}", p.total(expense)),
                    fmt::format("{:.4g}", 1e6 * p.total(expense) / tokens)});
  }
  return html_section(
      fmt::format("Throughput against {}", kind.name),
      html_paragraph("What other plans on " + predicted->front_of + " would do, as predicted.") +
          html_wide(pareto_svg(*context, *predicted->front)) +
          html_table({"GPUs", "stages", "pipelines", "TP", "with", "microbatch", "iteration", "tokens/s",
                      fmt::format("{}/iteration", kind.column), fmt::format("{}/1M tokens", kind.column)},
                     rows));
}

// The seconds of a change as pieces of one bar.
std::string phases_bar(const PlanChange& change) {
  double sum = 0;
  for (const auto& s : {change.cleanup_s, change.plan_s, change.broadcast_s, change.groups_s, change.state_s})
    sum += s.value_or(0);
  if (sum <= 0) return "-";
  std::string out = "<span class=\"parts\">";
  int colour = 0;
  for (const auto& s : {change.cleanup_s, change.plan_s, change.broadcast_s, change.groups_s, change.state_s})
    out += fmt::format("<i style=\"width:{:.1f}%;background:var(--g{})\"></i>", 100 * s.value_or(0) / sum,
                       colour++);
  return out + "</span>";
}

std::string changes_table(const RunHistory& history) {
  if (history.changes.empty()) return "";
  const auto head = [](const char* name, int colour) {
    return fmt::format("<i style=\"color:var(--g{})\">&#9632;</i>&nbsp;{}", colour, name);
  };
  std::vector<HtmlRow> rows;
  for (const PlanChange& change : history.changes)
    rows.push_back({fmt::format("{}", change.generation), fmt::format("{}", change.steps_done),
                    html_text(change.why), fmt::format("{}", change.ranks), xml_escaped(change.state_from),
                    fmt::format("{}", change.steps_lost), seconds_or_dash(change.cleanup_s),
                    seconds_or_dash(change.plan_s), seconds_or_dash(change.broadcast_s),
                    seconds_or_dash(change.groups_s), seconds_or_dash(change.state_s), phases_bar(change),
                    "<b>" + seconds_or_dash(change.resume_s) + "</b>",
                    seconds_or_dash(change.to_first_step_s)});
  return html_section("Changes of plan",
                      html_table({"generation", "after step", html_text("why"), "ranks", "state from",
                                  "steps lost", head("cleanup", 0), head("plan", 1), head("broadcast", 2),
                                  head("groups", 3), head("state", 4), "", "all", "to the first step"},
                                 rows));
}

std::string events_table(const RunHistory& history) {
  if (history.events.empty()) return "";
  const double begin_s = history.events.front().time_s;
  std::vector<HtmlRow> rows;
  const size_t first = history.events.size() - std::min(kMostEvents, history.events.size());
  for (size_t i = first; i < history.events.size(); ++i) {
    const RunEvent& event = history.events[i];
    rows.push_back(
        {fmt::format("+{:.1f} s", event.time_s - begin_s), xml_escaped(event.name), html_text(event.text)});
  }
  std::string out = html_paragraph(
      fmt::format("Since {:%Y-%m-%d %H:%M:%S} UTC.{}", fmt::gmtime(static_cast<std::time_t>(begin_s)),
                  first > 0 ? fmt::format(" The first {} are not shown.", first) : ""));
  return html_section("Events", out + html_table({"time", "event", html_text("what")}, rows));
}

}  // namespace

std::string run_report(const RunHistory& history, const PlanningContext* context,
                       const PlanOutlook* predicted, const std::vector<std::string>& notes) {
  const Plan& plan = history.plan;
  // Without a prediction the drawing says what the plan says.
  Prediction unknown;
  for (size_t j = 0; j < plan.pipelines.size(); ++j)
    unknown.stages.resize(unknown.stages.size() + plan.pipelines[j].stages.size());
  const Prediction& prediction = predicted != nullptr ? predicted->prediction : unknown;
  std::string body;
  for (const std::string& note : notes) body += html_paragraph(note);
  body +=
      result_table(history, predicted) + html_plan(plan, prediction) + training_charts(history, predicted);
  if (predicted != nullptr)
    body += html_prediction(prediction) + html_timeline(plan, prediction, predicted->timelines);
  body += rank_memory_table(history, predicted);
  if (predicted != nullptr) body += html_memory(plan, prediction, predicted->timelines);
  body += front_section(context, predicted) + changes_table(history) + events_table(history);
  const std::string name = std::filesystem::path(history.directory).lexically_normal().filename().string();
  return html_page(
      fmt::format("{}: {}", plan.model.empty() ? "run" : plan.model, name.empty() ? history.directory : name),
      summary(plan), body);
}

}  // namespace sailor
