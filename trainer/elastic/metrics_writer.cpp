#include "trainer/elastic/metrics_writer.h"

#include <chrono>
#include <filesystem>

namespace sailor {
namespace {

double wall_time_s() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// Where event files go; made anew when it is the run's own.
std::string event_directory(const RunDirectory& directory, const std::string& wanted) {
  if (!wanted.empty()) return wanted;
  const std::string own = directory.file("tensorboard");
  std::error_code ignored;
  std::filesystem::remove_all(own, ignored);
  return own;
}

}  // namespace

MetricsWriter::MetricsWriter(const RunDirectory& directory, const StepFacts& facts,
                             const std::string& tensorboard)
    : directory_(directory), facts_(facts), events_(event_directory(directory, tensorboard), wall_time_s()) {
  directory.write_document("metrics.jsonl", "");
  directory.write_document("metrics.csv", step_csv_header() + "\n");
}

void MetricsWriter::write(const StepReport& report) {
  directory_.append_line("metrics.jsonl", step_json(report, facts_));
  directory_.append_line("metrics.csv", step_csv(report, facts_));
  std::vector<std::pair<std::string, double>> scalars;
  auto add = [&scalars](const char* tag, const std::optional<double>& value) {
    if (value) scalars.emplace_back(tag, *value);
  };
  add("loss/train", report.loss);
  add("loss/validation", report.validation_loss);
  add("gradient_norm", report.gradient_norm);
  add("learning_rate", report.learning_rate);
  add("step_s", report.step_s);
  add("tokens_per_s", report.step_s > 0
                          ? std::optional<double>(static_cast<double>(facts_.tokens) / report.step_s)
                          : std::nullopt);
  add("mfu", facts_.mfu(report.step_s));
  events_.write(report.step, wall_time_s(), scalars);
}

}  // namespace sailor
