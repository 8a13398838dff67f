#include "planner/simulator/assumptions.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "planner/spec/error.h"
#include "planner/spec/field.h"
#include "planner/spec/text.h"
#include "planner/spec/text_file.h"

namespace sailor {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> yaml_files(const fs::path& directory) {
  std::error_code error;
  std::vector<std::string> files;
  for (auto it = fs::directory_iterator(directory, error); !error && it != fs::directory_iterator();
       it.increment(error))
    if (it->path().extension() == ".yaml") files.push_back(it->path().string());
  if (error) throw InputError({directory.string(), 0}, "cannot list this directory: " + error.message());
  std::sort(files.begin(), files.end());
  return files;
}

template <typename T>
const T& named(const std::map<std::string, T>& known, const std::string& name, const char* what) {
  const auto it = known.find(name);
  if (it != known.end()) return it->second;
  std::vector<std::string> names;
  for (const auto& entry : known) names.push_back(entry.first);
  throw InputError(fmt::format("unknown {} {}{} (known: {})", what, in_quotes(name),
                               did_you_mean(name, names), fmt::join(names, ", ")));
}

double* efficiency_of(GpuEfficiency& efficiency, const std::string& key) {
  if (key == "gemm") return &efficiency.gemm;
  if (key == "gemm_half_depth") return &efficiency.gemm_half_depth;
  if (key == "memory") return &efficiency.memory;
  if (key == "unaligned") return &efficiency.unaligned;
  if (key == "attention") return &efficiency.attention;
  return nullptr;
}

}  // namespace

const Platform& Assumptions::platform(const std::string& name) const {
  return named(platforms, name, "platform");
}

const FrameworkStyle& Assumptions::framework(const std::string& name) const {
  return named(frameworks, name, "framework");
}

Assumptions load_assumptions(const std::string& directory) {
  Assumptions assumptions;
  assumptions.catalog = load_catalog(directory + "/catalog.yaml");
  for (const std::string& file : yaml_files(fs::path(directory) / "platforms")) {
    Platform platform = load_platform(file);
    assumptions.platforms[platform.name] = std::move(platform);
  }
  for (const std::string& file : yaml_files(fs::path(directory) / "frameworks")) {
    FrameworkStyle style = load_framework_style(file);
    assumptions.frameworks[style.name] = std::move(style);
  }
  return assumptions;
}

void set_constant(Assumptions& assumptions, const std::string& path, double value) {
  if (!std::isfinite(value) || value < 0 || value > 1e18 ||
      (value == 0 && path.find("bytes_per_s") != std::string::npos) ||
      (value == 0 && path.rfind("gpu_types.", 0) == 0))
    throw InputError(in_quotes(path) + ": " + fmt::format("{}", value) + " is out of range");
  // Names of types and platforms may hold dots; the kinds and the keys do not.
  const auto starts = [&](const std::string& prefix) { return path.rfind(prefix, 0) == 0; };
  for (auto& [name, type] : assumptions.catalog.gpu_types) {
    const std::string prefix = "gpu_types." + name + ".efficiency.";
    if (!starts(prefix)) continue;
    if (double* number = efficiency_of(type.efficiency, path.substr(prefix.size()))) {
      *number = value;
      return;
    }
  }
  for (auto& [name, platform] : assumptions.platforms) {
    const std::string prefix = "platforms." + name + ".";
    if (!starts(prefix)) continue;
    if (double* number = platform.find(path.substr(prefix.size()))) {
      *number = value;
      return;
    }
  }
  for (auto& [name, style] : assumptions.frameworks) {
    const std::string prefix = "frameworks." + name + ".";
    if (!starts(prefix)) continue;
    style.set(path.substr(prefix.size()), fmt::format("{}", value), {style.file, 0});
    return;
  }
  throw InputError("no number " + in_quotes(path) +
                   " to calibrate: its GPU type, platform or key is not known");
}

void apply(const Calibration& calibration, Assumptions& assumptions) {
  for (const auto& [path, value] : calibration.constants) {
    try {
      set_constant(assumptions, path, value);
    } catch (const InputError& error) {
      throw InputError({calibration.file, 0}, error.what());
    }
  }
}

void apply(const Calibration& calibration, Catalog& catalog, FrameworkStyle& framework) {
  if (!calibration.framework.empty() && calibration.framework != framework.name) return;
  Assumptions assumptions;
  assumptions.catalog = catalog;
  assumptions.frameworks[framework.name] = framework;
  Calibration known = calibration;
  std::erase_if(known.constants, [&](const auto& constant) {
    return !constant.first.starts_with("gpu_types.") &&
           !constant.first.starts_with("frameworks." + framework.name + ".");
  });
  apply(known, assumptions);
  catalog = std::move(assumptions.catalog);
  framework = std::move(assumptions.frameworks[framework.name]);
}

Calibration parse_calibration(const std::string& json, const std::string& file_name) {
  const Document document = parse_json(json, file_name);
  MapField map(Field(document), {"sailor_calibration", "framework", "constants", "provenance"});
  require_version(map, "sailor_calibration", 1);
  Calibration calibration;
  calibration.file = file_name;
  if (const auto framework = map.optional("framework")) calibration.framework = framework->name();
  for (const auto& [path, value] : map.required("constants").entries())
    calibration.constants[path] = value.non_negative();
  MapField provenance(map.required("provenance"),
                      {"set", "data", "rule", "rows", "mean_error_pct", "left_out_error_pct"});
  calibration.set = provenance.required("set").text();
  calibration.data = provenance.required("data").text_or_empty();
  calibration.rule = provenance.required("rule").text_or_empty();
  for (const Field& row : provenance.required("rows").items()) calibration.rows.push_back(row.text());
  calibration.mean_error_pct = provenance.required("mean_error_pct").non_negative();
  if (const auto error = provenance.optional("left_out_error_pct"))
    calibration.left_out_error_pct = error->non_negative();
  return calibration;
}

Calibration load_calibration(const std::string& path) {
  return parse_calibration(read_text_file(path), path);
}

std::string to_json(const Calibration& calibration) {
  nlohmann::ordered_json json;
  json["sailor_calibration"] = 1;
  if (!calibration.framework.empty()) json["framework"] = calibration.framework;
  for (const auto& [path, value] : calibration.constants) json["constants"][path] = value;
  json["provenance"] = {{"set", calibration.set},
                        {"data", calibration.data},
                        {"rule", calibration.rule},
                        {"rows", calibration.rows},
                        {"mean_error_pct", calibration.mean_error_pct}};
  if (calibration.left_out_error_pct)
    json["provenance"]["left_out_error_pct"] = *calibration.left_out_error_pct;
  return json.dump(2) + "\n";
}

}  // namespace sailor
