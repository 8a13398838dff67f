#include "trainer/record/run_metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "planner/plan/rank_layout.h"

namespace sailor {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kMiB = 1024.0 * 1024.0;

// JSON knows no NaN and no infinity.
Json number_or_null(const std::optional<double>& value) {
  return value && std::isfinite(*value) ? Json(*value) : Json(nullptr);
}

std::vector<double> without_warm_up(const std::vector<double>& steps_s) {
  const size_t warm_up = std::min<size_t>(3, steps_s.size() - 1);
  return {steps_s.begin() + static_cast<std::ptrdiff_t>(warm_up), steps_s.end()};
}

double tokens_per_s(int64_t tokens, double seconds) {
  return seconds > 0 ? static_cast<double>(tokens) / seconds : 0;
}

}  // namespace

std::optional<double> RunSummary::prediction_error_pct() const {
  if (!measured_iteration_s || !predicted_iteration_s || *measured_iteration_s <= 0) return std::nullopt;
  return 100.0 * (*predicted_iteration_s - *measured_iteration_s) / *measured_iteration_s;
}

std::optional<double> StepFacts::mfu(double step_s) const {
  if (!peak_flops || *peak_flops <= 0 || flops <= 0 || step_s <= 0) return std::nullopt;
  return flops / step_s / *peak_flops;
}

std::string step_line(const StepReport& report, const StepFacts& facts) {
  std::string line =
      fmt::format("step {:>{}}/{}", report.step, std::to_string(facts.steps).size(), facts.steps);
  if (report.loss) line += fmt::format(" | loss {:.4f}", *report.loss);
  if (report.validation_loss) line += fmt::format(" | val {:.4f}", *report.validation_loss);
  if (report.gradient_norm) line += fmt::format(" | norm {:.3f}", *report.gradient_norm);
  if (report.learning_rate) line += fmt::format(" | lr {:.1e}", *report.learning_rate);
  const std::optional<double> mfu = facts.mfu(report.step_s);
  return line + fmt::format(" | {:.0f} ms | {:.0f} tok/s | MFU {}", 1e3 * report.step_s,
                            tokens_per_s(facts.tokens, report.step_s),
                            mfu ? fmt::format("{:.1f} %", 100 * *mfu) : "-");
}

std::string step_json(const StepReport& report, const StepFacts& facts) {
  Json json = {{"step", report.step},
               {"loss", number_or_null(report.loss)},
               {"validation_loss", number_or_null(report.validation_loss)},
               {"gradient_norm", number_or_null(report.gradient_norm)},
               {"learning_rate", number_or_null(report.learning_rate)},
               {"step_s", report.step_s},
               {"tokens_per_s", tokens_per_s(facts.tokens, report.step_s)},
               {"mfu", number_or_null(facts.mfu(report.step_s))},
               {"data_digest", report.data_digest},
               {"phases_s", report.phases_s}};
  return json.dump();
}

std::string step_csv_header() {
  return "step,loss,validation_loss,gradient_norm,learning_rate,step_s,tokens_per_s,mfu,data_digest";
}

std::string step_csv(const StepReport& report, const StepFacts& facts) {
  std::string line = std::to_string(report.step);
  auto add = [&line](const std::optional<double>& value) {
    line += value && std::isfinite(*value) ? fmt::format(",{}", *value) : ",";
  };
  add(report.loss);
  add(report.validation_loss);
  add(report.gradient_norm);
  add(report.learning_rate);
  add(report.step_s);
  add(tokens_per_s(facts.tokens, report.step_s));
  add(facts.mfu(report.step_s));
  return line + fmt::format(",{}", report.data_digest);
}

std::optional<double> steady_iteration_s(const std::vector<double>& steps_s) {
  if (steps_s.empty()) return std::nullopt;
  std::vector<double> steady = without_warm_up(steps_s);
  std::sort(steady.begin(), steady.end());
  const size_t n = steady.size();
  return n % 2 ? steady[n / 2] : 0.5 * (steady[n / 2 - 1] + steady[n / 2]);
}

std::optional<double> mean_iteration_s(const std::vector<double>& steps_s) {
  if (steps_s.empty()) return std::nullopt;
  const std::vector<double> steady = without_warm_up(steps_s);
  return std::accumulate(steady.begin(), steady.end(), 0.0) / static_cast<double>(steady.size());
}

std::string settings_table(const JobSpec& job, const Plan& plan, const std::string& data,
                           double unigram_entropy, bool emulated, const std::string& directory) {
  std::string table;
  auto row = [&table](const std::string& name, const std::string& value) {
    table += fmt::format("  {:<14} {}\n", name, value);
  };
  const ModelSpec& m = job.model;
  row("model", fmt::format("{} ({}): {} blocks, hidden {}, heads {}, sequence {}, vocabulary {}", m.name,
                           m.family, m.layers, m.hidden, m.heads, m.sequence, m.vocabulary));
  const TrainingSpec& t = job.training;
  row("training", fmt::format("{} steps of {} sequences, {}, seed {}", t.steps, t.global_batch,
                              to_string(t.precision), t.seed));
  std::string optimizer = fmt::format("{} lr {:.1e}", t.optimizer.name, t.optimizer.lr);
  if (t.schedule.name != "constant")
    optimizer += fmt::format(", {} to {:.1e}", t.schedule.name, t.schedule.min_lr);
  if (t.schedule.warmup_steps > 0) optimizer += fmt::format(", warm-up {} steps", t.schedule.warmup_steps);
  if (t.optimizer.weight_decay > 0) optimizer += fmt::format(", weight decay {}", t.optimizer.weight_decay);
  if (t.clip_grad_norm) optimizer += fmt::format(", gradients clipped at {}", *t.clip_grad_norm);
  row("optimizer", optimizer);
  row("data",
      fmt::format("{} ({}), unigram entropy {:.4f} nats per token", job.data.train, data, unigram_entropy));
  if (!job.data.validation.empty())
    row("validation", fmt::format("{}, every {} steps", job.data.validation, t.validation.every_steps));
  row("plan", summary(plan));
  const RankLayout layout(plan);
  for (const std::string& node : layout.nodes()) {
    std::string type;
    for (const int rank : layout.ranks_on(node)) {
      const RankSlot& slot = layout.slots()[rank];
      type = plan.pipelines[slot.pipeline].stages[slot.stage].gpu_type;
    }
    if (!node.empty()) row("node " + node, fmt::format("{} x {}", layout.ranks_on(node).size(), type));
  }
  if (emulated) row("devices", "emulated: computation is real, its duration is the emulated GPU type's");
  if (plan.prediction)
    row("predicted", fmt::format("{:.1f} ms per iteration", 1e3 * plan.prediction->iteration_s));
  row("files", directory);
  return table;
}

std::string summary_text(const RunSummary& s) {
  std::string text = fmt::format("{}: {} steps in {:.1f} s", s.status, s.steps, s.training_s);
  if (s.first_loss && s.last_loss)
    text += fmt::format(", loss {:.4f} -> {:.4f} (unigram entropy of the data: {:.4f})", *s.first_loss,
                        *s.last_loss, s.unigram_entropy);
  if (s.validation_loss) text += fmt::format(", validation loss {:.4f}", *s.validation_loss);
  text += '\n';
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
               {"emulated", s.emulated},
               {"steps", s.steps},
               {"first_loss", number_or_null(s.first_loss)},
               {"last_loss", number_or_null(s.last_loss)},
               {"validation_loss", number_or_null(s.validation_loss)},
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

}  // namespace sailor
