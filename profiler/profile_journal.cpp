#include "profiler/profile_journal.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>

#include "planner/process/file_descriptor.h"
#include "planner/spec/text_file.h"

namespace sailor {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

Json to_json(const LayerMeasurement& m) {
  return {{"forward_s", m.times.forward_s},    {"backward_s", m.times.backward_s},
          {"update_s", m.times.update_s},      {"samples", m.samples},
          {"light_s", m.times.light_s},        {"mlp_s", m.times.mlp_s},
          {"weight_s", m.times.weight_s},      {"outliers", m.outliers},
          {"relative_error", m.relative_error}};
}

LayerMeasurement measurement(const Json& json) {
  LayerMeasurement m;
  m.times.forward_s = json.at("forward_s").get<double>();
  m.times.backward_s = json.at("backward_s").get<double>();
  m.times.update_s = json.at("update_s").get<double>();
  m.times.light_s = json.at("light_s").get<double>();
  m.times.mlp_s = json.at("mlp_s").get<double>();
  m.times.weight_s = json.at("weight_s").get<double>();
  m.samples = json.at("samples").get<int>();
  m.outliers = json.at("outliers").get<int>();
  m.relative_error = json.at("relative_error").get<double>();
  return m;
}

// What must be equal for rounds to be of one profile.
Json conditions(const MeasuredWith& equipment, size_t kinds) {
  return {{"host", equipment.host},           {"device", equipment.device}, {"driver", equipment.driver},
          {"libraries", equipment.libraries}, {"ranks", equipment.ranks},   {"kinds", kinds}};
}

std::string line_of(int tp, int microbatch, const StackBench::ByKind& measured) {
  Json kinds = Json::array();
  for (const LayerMeasurement& m : measured) kinds.push_back(to_json(m));
  return Json{{"tp", tp}, {"microbatch", microbatch}, {"kinds", kinds}}.dump() + "\n";
}

}  // namespace

std::string ProfileJournal::path_of(const std::string& profile_path) {
  const fs::path path(profile_path);
  return (path.parent_path() / ("." + path.filename().string() + ".unfinished")).string();
}

ProfileJournal::ProfileJournal(const std::string& profile_path, const MeasuredWith& equipment, size_t kinds)
    : path_(path_of(profile_path)) {
  const Json own = conditions(equipment, kinds);
  bool usable = false;
  if (fs::exists(path_)) {
    std::istringstream lines(read_text_file(path_));
    for (std::string line; std::getline(lines, line);) {
      const Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
      if (json.is_discarded()) break;  // the last thing that was written
      if (!usable) {
        if (json != own) break;
        usable = true;
        continue;
      }
      try {
        StackBench::ByKind round;
        for (size_t k = 0; k < kinds; ++k) round.push_back(measurement(json.at("kinds").at(k)));
        rounds_[{json.at("tp").get<int>(), json.at("microbatch").get<int>()}].push_back(round);
      } catch (const nlohmann::json::exception&) {
        break;
      }
    }
  }
  // Replaced by what is of use of it, so that nothing is appended to half a line; all at once, so that an
  // interruption now loses nothing.
  std::string text = own.dump() + "\n";
  for (const auto& [cell, rounds] : rounds_)
    for (const StackBench::ByKind& round : rounds) text += line_of(cell.first, cell.second, round);
  write_file_atomically(path_, text);
}

void ProfileJournal::add(int tp, int microbatch, const StackBench::ByKind& measured) {
  append(line_of(tp, microbatch, measured));
  rounds_[{tp, microbatch}].push_back(measured);
}

void ProfileJournal::append(const std::string& line) {
  const FileDescriptor file(open(path_.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
  if (file.valid()) errno = ENOSPC;  // what a write that ends early means
  if (!file.valid() || write(file.get(), line.data(), line.size()) != static_cast<ssize_t>(line.size()) ||
      fdatasync(file.get()) != 0)
    throw std::runtime_error(fmt::format("cannot write {}: {}", path_, std::strerror(errno)));
}

void ProfileJournal::finish() {
  std::error_code ignored;
  fs::remove(path_, ignored);
}

}  // namespace sailor
