#include "trainer/record/program_steps.h"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "planner/spec/quantity.h"

namespace sailor {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr const char* kPrefix = "rank-";

std::string file_of(const std::string& directory, int rank) {
  return directory + "/" + kPrefix + std::to_string(rank) + ".jsonl";
}

template <class Number>
std::optional<Number> member(const Json& json, const char* key) {
  const auto it = json.find(key);
  if (it == json.end() || !it->is_number()) return std::nullopt;
  return it->get<Number>();
}

std::optional<StepReport> report_of(int rank, const std::string& line) {
  const Json json = Json::parse(line, nullptr, false);
  if (!json.is_object()) return std::nullopt;
  const auto generation = member<int>(json, "generation");
  const auto step = member<int64_t>(json, "step");
  const auto step_s = member<double>(json, "step_s");
  if (!generation || *generation < 1 || !step || *step < 1 || !step_s || !(*step_s > 0)) return std::nullopt;
  StepReport report{.generation = *generation, .rank = rank, .step = *step};
  report.step_s = *step_s;
  report.loss = member<double>(json, "loss");
  report.peak_rss_bytes = std::max<int64_t>(0, member<int64_t>(json, "peak_bytes").value_or(0));
  return report;
}

// Whole lines of a file from `*offset` on, which moves behind them.
std::vector<std::string> lines_from(const std::string& path, int64_t* offset) {
  std::vector<std::string> lines;
  std::ifstream file(path, std::ios::binary);
  if (!file.seekg(*offset)) return lines;
  for (std::string line; std::getline(file, line) && !file.eof();) {
    *offset += static_cast<int64_t>(line.size()) + 1;
    lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace

ProgramSteps::ProgramSteps(std::string directory) : directory_(std::move(directory)) {
  fs::remove_all(directory_);
  fs::create_directories(directory_);
}

std::vector<StepReport> ProgramSteps::take() {
  std::vector<StepReport> reports;
  for (const std::string& line : lines_from(file_of(directory_, 0), &read_bytes_))
    if (std::optional<StepReport> report = report_of(0, line)) reports.push_back(*std::move(report));
  return reports;
}

std::vector<StepReport> ProgramSteps::last_of_all(int generation) const {
  std::vector<StepReport> reports;
  std::error_code error;  // without the directory there are none
  for (const fs::directory_entry& entry : fs::directory_iterator(directory_, error)) {
    const std::string name = entry.path().stem();
    const auto rank =
        name.starts_with(kPrefix) ? parse_number(name.substr(std::string(kPrefix).size())) : std::nullopt;
    if (!rank || *rank < 0 || *rank != std::floor(*rank)) continue;
    int64_t offset = 0;
    std::optional<StepReport> last;
    for (const std::string& line : lines_from(entry.path(), &offset)) {
      std::optional<StepReport> report = report_of(static_cast<int>(*rank), line);
      if (report && report->generation == generation) last = std::move(report);
    }
    if (last) reports.push_back(*std::move(last));
  }
  return reports;
}

}  // namespace sailor
