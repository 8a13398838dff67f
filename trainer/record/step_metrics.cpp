#include "trainer/record/step_metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

namespace sailor {
namespace {

using Json = nlohmann::ordered_json;

// JSON has no NaN and no infinity.
Json number_or_null(const std::optional<double>& value) {
  return value && std::isfinite(*value) ? Json(*value) : Json(nullptr);
}

std::vector<double> without_warm_up(const std::vector<double>& steps_s) {
  const size_t warm_up = std::min<size_t>(3, steps_s.size() - 1);
  return {steps_s.begin() + static_cast<std::ptrdiff_t>(warm_up), steps_s.end()};
}

// Of the two causes of a skipped step.
bool is_spike(const StepReport& report) {
  return report.spikes && (report.gradient_norm || !report.loss_scale);
}

double tokens_per_s(int64_t tokens, double seconds) {
  return seconds > 0 ? static_cast<double>(tokens) / seconds : 0;
}

}  // namespace

std::optional<double> StepFacts::mfu(double step_s) const {
  if (!peak_flops || *peak_flops <= 0 || flops <= 0 || step_s <= 0) return std::nullopt;
  return flops / step_s / *peak_flops;
}

std::string step_line(const StepReport& report, const StepFacts& facts) {
  std::string line =
      fmt::format("step {:>{}}/{}", report.step, std::to_string(facts.steps).size(), facts.steps);
  if (report.loss) line += fmt::format(" | loss {:.4f}", *report.loss);
  if (!report.validation.empty()) line += " | val " + validation_text(report.validation);
  if (report.gradient_norm) line += fmt::format(" | norm {:.3f}", *report.gradient_norm);
  if (report.learning_rate) line += fmt::format(" | lr {:.1e}", *report.learning_rate);
  if (report.loss_scale) line += fmt::format(" | scale {}", *report.loss_scale);
  if (report.skipped) line += is_spike(report) ? " (spike, skipped)" : " (overflow, skipped)";
  const std::optional<double> mfu = facts.mfu(report.step_s);
  return line + fmt::format(" | {:.0f} ms | {:.0f} tok/s | MFU {}", 1e3 * report.step_s,
                            tokens_per_s(facts.tokens, report.step_s),
                            mfu ? fmt::format("{:.1f} %", 100 * *mfu) : "-");
}

std::string step_json(const StepReport& report, const StepFacts& facts) {
  Json json = {{"step", report.step},
               {"loss", number_or_null(report.loss)},
               {"gradient_norm", number_or_null(report.gradient_norm)},
               {"learning_rate", number_or_null(report.learning_rate)},
               {"step_s", report.step_s},
               {"tokens_per_s", tokens_per_s(facts.tokens, report.step_s)},
               {"mfu", number_or_null(facts.mfu(report.step_s))},
               {"data_digest", report.data_digest},
               {"phases_s", report.phases_s}};
  if (report.z_loss) json["z_loss"] = number_or_null(report.z_loss);
  add_validation(json, report.validation);
  if (report.loss_scale) json["loss_scale"] = *report.loss_scale;
  if (report.spikes) json["spikes"] = *report.spikes;
  if (report.loss_scale || report.spikes) json["skipped"] = report.skipped;
  if (!report.layer_norms.empty()) json["layer_gradient_norms"] = report.layer_norms;
  if (report.gradient_noise)
    json["gradient_noise"] = {{"signal", number_or_null(report.gradient_signal)},
                              {"noise", number_or_null(report.gradient_noise)}};
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
  const auto unnamed = report.validation.find("");
  add(unnamed == report.validation.end() ? std::nullopt : std::optional(unnamed->second));
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

}  // namespace sailor
