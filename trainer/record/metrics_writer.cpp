#include "trainer/record/metrics_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <stdexcept>

namespace sailor {
namespace {

namespace fs = std::filesystem;

double wall_time_s() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string event_directory(const RunDirectory& directory, const std::string& wanted) {
  return wanted.empty() ? directory.file("tensorboard") : wanted;
}

std::vector<fs::path> files_in(const std::string& directory) {
  std::vector<fs::path> files;
  std::error_code error;  // without the directory there are no files
  for (const fs::directory_entry& entry : fs::directory_iterator(directory, error))
    files.push_back(entry.path());
  return files;
}

std::optional<int64_t> step_of_json(const std::string& line) {
  const auto json = nlohmann::json::parse(line, nullptr, false);
  if (!json.is_object() || !json.contains("step") || !json["step"].is_number_integer()) return std::nullopt;
  return json["step"].get<int64_t>();
}

std::optional<int64_t> step_of_csv(const std::string& line) {
  int64_t step = 0;
  const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), step);
  if (error != std::errc() || end == line.data() + line.size() || *end != ',' ||
      std::ranges::count(line, ',') != std::ranges::count(step_csv_header(), ',') ||
      line.find('\0') != std::string::npos)
    return std::nullopt;
  return step;
}

// A power cut may have left anything in the last lines, also bytes that are not text.
std::string text_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file) throw std::runtime_error(fmt::format("cannot read {}", path));
  return text.str();
}

// The lines of `text` for steps before `first_step`. A line without a newline was truncated by a crash.
std::string lines_before(const std::string& text, int64_t first_step,
                         const std::function<std::optional<int64_t>(const std::string&)>& step_of) {
  std::istringstream in(text);
  std::string kept;
  for (std::string line; std::getline(in, line) && !in.eof();) {
    if (const auto step = step_of(line); step && *step < first_step) kept += line + "\n";
  }
  return kept;
}

}  // namespace

MetricsWriter::MetricsWriter(const RunDirectory& directory, const StepFacts& facts,
                             const std::string& tensorboard)
    : directory_(directory),
      facts_(facts),
      earlier_events_(tensorboard.empty() ? files_in(event_directory(directory, ""))
                                          : std::vector<fs::path>()),
      events_(event_directory(directory, tensorboard), wall_time_s()) {
  if (!fs::exists(directory.file("metrics.jsonl"))) directory.write_document("metrics.jsonl", "");
  if (!fs::exists(directory.file("metrics.csv")))
    directory.write_document("metrics.csv", step_csv_header() + "\n");
}

void MetricsWriter::sync() {
  for (const char* name : {"metrics.jsonl", "metrics.csv"}) directory_.sync(name);
}

// Only the first step shows whether this run continues a previous one.
void MetricsWriter::begin(int64_t first_step) {
  directory_.write_document(
      "metrics.jsonl", lines_before(text_of(directory_.file("metrics.jsonl")), first_step, step_of_json));
  const std::string header = step_csv_header() + "\n", csv = text_of(directory_.file("metrics.csv"));
  const bool same_columns = csv.compare(0, header.size(), header) == 0;
  directory_.write_document("metrics.csv",
                            header + (same_columns ? lines_before(csv, first_step, step_of_csv) : ""));
  if (first_step > 1 || last_step_ > 0) return events_.begin_session(first_step, wall_time_s());
  for (const fs::path& file : earlier_events_) {
    std::error_code ignored;
    fs::remove_all(file, ignored);
  }
}

void MetricsWriter::write(const StepReport& report) {
  if (last_step_ == 0 || report.step <= last_step_) begin(report.step);
  last_step_ = report.step;
  directory_.append_line("metrics.jsonl", step_json(report, facts_));
  directory_.append_line("metrics.csv", step_csv(report, facts_));
  std::vector<std::pair<std::string, double>> scalars;
  auto add = [&scalars](const char* tag, const std::optional<double>& value) {
    if (value) scalars.emplace_back(tag, *value);
  };
  add("loss/train", report.loss);
  for (const auto& [name, loss] : report.validation) {
    const std::string set = name.empty() ? "" : "/" + name;
    scalars.emplace_back("loss/validation" + set, loss);
    scalars.emplace_back("perplexity/validation" + set, std::exp(loss));
  }
  add("loss/z", report.z_loss);
  add("gradient_norm", report.gradient_norm);
  add("learning_rate", report.learning_rate);
  add("loss_scale", report.loss_scale);
  add("gradient_noise/signal", report.gradient_signal);
  add("gradient_noise/noise", report.gradient_noise);
  if (report.spikes) add("spikes", static_cast<double>(*report.spikes));
  for (std::size_t layer = 0; layer < report.layer_norms.size(); ++layer)
    scalars.emplace_back(fmt::format("layer_gradient_norm/{:03}", layer), report.layer_norms[layer]);
  add("step_s", report.step_s);
  add("tokens_per_s", report.step_s > 0
                          ? std::optional<double>(static_cast<double>(facts_.tokens) / report.step_s)
                          : std::nullopt);
  add("mfu", facts_.mfu(report.step_s));
  events_.write(report.step, wall_time_s(), scalars);
}

}  // namespace sailor
