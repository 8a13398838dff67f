#include "planner/history/run_summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>

#include "planner/history/json_lines.h"

namespace sailor {
namespace {

constexpr double kMiB = 1024.0 * 1024.0;

// JSON knows no NaN and no infinity.
Json number_or_null(const std::optional<double>& value) {
  return value && std::isfinite(*value) ? Json(*value) : Json(nullptr);
}

RankSummary rank_of(const Json& json) {
  return {.rank = integer_in<int>(json, "rank"),
          .node = word_in(json, "node"),
          .gpu_type = word_in(json, "gpu_type"),
          .pipeline = integer_in<int>(json, "pipeline"),
          .stage = integer_in<int>(json, "stage"),
          .peak_rss_bytes = integer_in<int64_t>(json, "peak_rss_bytes"),
          .max_in_flight = integer_in<int>(json, "max_in_flight"),
          .in_flight_limit = integer_in<int>(json, "in_flight_limit"),
          .paced_tasks = integer_in<int64_t>(json, "paced_tasks"),
          .overrun_tasks = integer_in<int64_t>(json, "overrun_tasks"),
          .overrun_s = number_in(json, "overrun_s").value_or(0),
          .paced_s = number_in(json, "paced_s").value_or(0)};
}

}  // namespace

std::optional<double> RunSummary::prediction_error_pct() const {
  if (!measured_iteration_s || !predicted_iteration_s || *measured_iteration_s <= 0) return std::nullopt;
  return 100.0 * (*predicted_iteration_s - *measured_iteration_s) / *measured_iteration_s;
}

std::string summary_text(const RunSummary& s) {
  std::string text = fmt::format("{}: {} steps in {:.1f} s", s.status, s.steps, s.training_s);
  if (s.first_loss && s.last_loss)
    text += fmt::format(", loss {:.4f} -> {:.4f}", *s.first_loss, *s.last_loss);
  if (s.first_loss && s.last_loss && s.unigram_entropy > 0)
    text += fmt::format(" (unigram entropy of the data: {:.4f})", s.unigram_entropy);
  if (!s.validation.empty()) text += ", validation loss " + validation_text(s.validation);
  text += '\n';
  if (!s.moved.empty()) text += s.moved + '\n';
  if (!s.next_job.empty()) text += fmt::format("training continues in job {}\n", s.next_job);
  if (s.measured_iteration_s) {
    text += fmt::format("iteration: measured {:.1f} ms (median)", 1e3 * *s.measured_iteration_s);
    if (s.predicted_iteration_s)
      text += fmt::format(", predicted {:.1f} ms, error {:+.1f} %", 1e3 * *s.predicted_iteration_s,
                          *s.prediction_error_pct());
    if (s.emulated) text += " (emulated)";
    if (s.tokens_per_s) text += fmt::format(", {:.0f} tok/s", *s.tokens_per_s);
    if (s.mfu) text += fmt::format(", MFU {:.1f} %", 100 * *s.mfu);
    text += '\n';
  }
  if (s.ranks.empty()) return text;
  text += fmt::format("{:>5} {:>9} {:>6} {:<12} {:<12} {:>12} {:>18}{}\n", "rank", "pipeline", "stage",
                      "node", "gpu_type", "peak_rss_MiB", "in_flight(limit)", s.emulated ? "  overruns" : "");
  for (const RankSummary& r : s.ranks) {
    text +=
        fmt::format("{:>5} {:>9} {:>6} {:<12} {:<12} {:>12.0f} {:>18}", r.rank, r.pipeline, r.stage,
                    r.node.empty() ? "-" : r.node, r.gpu_type, static_cast<double>(r.peak_rss_bytes) / kMiB,
                    fmt::format("{} ({})", r.max_in_flight, r.in_flight_limit));
    if (s.emulated && r.paced_tasks > 0)
      text += fmt::format("  {} of {} ({:.1f} % of the time)", r.overrun_tasks, r.paced_tasks,
                          r.paced_s > 0 ? 100 * r.overrun_s / r.paced_s : 0.0);
    text += '\n';
  }
  return text;
}

std::string summary_json(const RunSummary& s) {
  Json json = {{"sailor_run_summary", 1},
               {"job_id", s.job_id},
               {"status", s.status},
               {"error", s.error},
               {"next_job", s.next_job},
               {"moved", s.moved},
               {"emulated", s.emulated},
               {"steps", s.steps},
               {"first_loss", number_or_null(s.first_loss)},
               {"last_loss", number_or_null(s.last_loss)},
               {"unigram_entropy", s.unigram_entropy},
               {"measured_iteration_s", number_or_null(s.measured_iteration_s)},
               {"mean_iteration_s", number_or_null(s.mean_iteration_s)},
               {"predicted_iteration_s", number_or_null(s.predicted_iteration_s)},
               {"prediction_error_pct", number_or_null(s.prediction_error_pct())},
               {"tokens_per_s", number_or_null(s.tokens_per_s)},
               {"mfu", number_or_null(s.mfu)},
               {"training_s", s.training_s},
               {"catalog", s.catalog},
               {"profiles", s.profiles},
               {"ranks", Json::array()}};
  add_validation(json, s.validation);
  for (const RankSummary& r : s.ranks) {
    json["ranks"].push_back({{"rank", r.rank},
                             {"node", r.node},
                             {"gpu_type", r.gpu_type},
                             {"pipeline", r.pipeline},
                             {"stage", r.stage},
                             {"peak_rss_bytes", r.peak_rss_bytes},
                             {"max_in_flight", r.max_in_flight},
                             {"in_flight_limit", r.in_flight_limit},
                             {"paced_tasks", r.paced_tasks},
                             {"overrun_tasks", r.overrun_tasks},
                             {"overrun_s", r.overrun_s},
                             {"paced_s", r.paced_s}});
  }
  return json.dump(2) + "\n";
}

std::optional<RunSummary> read_run_summary(const std::string& path) {
  std::ifstream file(path);
  const Json json = Json::parse(file, nullptr, false);
  if (!json.is_object()) return std::nullopt;
  RunSummary s;
  s.job_id = word_in(json, "job_id");
  s.status = word_in(json, "status");
  s.error = word_in(json, "error");
  s.next_job = word_in(json, "next_job");
  s.moved = word_in(json, "moved");
  s.emulated = json.contains("emulated") && json["emulated"] == true;
  s.steps = integer_in<int64_t>(json, "steps");
  s.first_loss = number_in(json, "first_loss");
  s.last_loss = number_in(json, "last_loss");
  s.validation = validation_in(json);
  s.unigram_entropy = number_in(json, "unigram_entropy").value_or(0);
  s.measured_iteration_s = number_in(json, "measured_iteration_s");
  s.mean_iteration_s = number_in(json, "mean_iteration_s");
  s.predicted_iteration_s = number_in(json, "predicted_iteration_s");
  s.tokens_per_s = number_in(json, "tokens_per_s");
  s.mfu = number_in(json, "mfu");
  s.training_s = number_in(json, "training_s").value_or(0);
  s.catalog = word_in(json, "catalog");
  if (json.contains("profiles") && json["profiles"].is_array()) {
    for (const Json& directory : json["profiles"]) {
      if (directory.is_string()) s.profiles.push_back(directory);
    }
  }
  if (!json.contains("ranks") || !json["ranks"].is_array()) return s;
  for (const Json& rank : json["ranks"]) s.ranks.push_back(rank_of(rank));
  return s;
}

MeasuredRun measured_run(const RunSummary& summary, const JobSpec& job, const Plan& plan) {
  MeasuredRun record;
  record.name = summary.job_id.empty() ? job.model.name : summary.job_id;
  record.framework = "sailor";
  record.platform = "site";
  record.precision = precision_of(plan, job);
  record.model = job.model.name;
  record.family = job.model.family;
  record.shape = shape_of(job.model);
  record.plan = plan;
  record.plan.prediction.reset();
  record.ran = summary.status == "finished";
  if (summary.measured_iteration_s) record.iteration_s.push_back(*summary.measured_iteration_s);
  int64_t peak_bytes = 0;
  for (const RankSummary& rank : summary.ranks) peak_bytes = std::max(peak_bytes, rank.peak_rss_bytes);
  if (peak_bytes > 0) record.peak_memory_bytes.push_back(static_cast<double>(peak_bytes));
  return record;
}

}  // namespace sailor
