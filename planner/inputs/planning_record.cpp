#include "planner/inputs/planning_record.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "planner/spec/error.h"
#include "planner/spec/field.h"
#include "planner/spec/text_file.h"
#include "planner/spec/yaml_text.h"

namespace sailor {
namespace {

namespace fs = std::filesystem;

std::string names_of(const PlanFeatures& features) {
  std::vector<std::string> names;
  for (PlanFeature feature : features) names.emplace_back(to_string(feature));
  return names.empty() ? "none" : fmt::format("{}", fmt::join(names, ","));
}

std::string options_yaml(const SearchRequest& request, double time_limit_s, const PlanOverrides& overrides) {
  std::string out = fmt::format("sailor_planning: 1\nsearch_space: {}\ncost_model: {}\ntime_limit: {}s\n",
                                to_string(request.space), to_string(request.cost_model), time_limit_s);
  if (request.effort) out += fmt::format("effort: {}\n", *request.effort);
  if (request.allow) out += fmt::format("allow: {}\n", yaml_text(names_of(*request.allow)));
  if (overrides.objective) out += fmt::format("objective: {}\n", to_string(*overrides.objective));
  for (const Expense expense : kExpenses)
    if (overrides.most[expense]) out += fmt::format("{}: {}\n", limit_key(expense), *overrides.most[expense]);
  if (overrides.min_iterations_per_s)
    out += fmt::format("min_iterations_per_s: {}\n", *overrides.min_iterations_per_s);
  if (!overrides.max_gpus.empty()) out += "max_gpus:\n";
  for (const auto& [type, count] : overrides.max_gpus)
    out += fmt::format("  {}: {}\n", yaml_text(type), count);
  if (!overrides.zones.empty()) out += fmt::format("zones: {}\n", yaml_list(overrides.zones));
  if (!overrides.partitions.empty()) out += fmt::format("partitions: {}\n", yaml_list(overrides.partitions));
  return out;
}

std::vector<std::string> read_names(const std::optional<Field>& field) {
  std::vector<std::string> names;
  if (field)
    for (const Field& item : field->items()) names.push_back(item.name());
  return names;
}

void write_files(const std::string& directory, const PlanningFiles& files) {
  std::error_code error;
  fs::remove_all(directory, error);
  for (const auto& [name, text] : files) {
    const fs::path path = fs::path(directory) / name;
    create_directories_on_disk(path.parent_path());
    write_file_atomically(path.string(), text);
  }
}

// A name of a file below planning/, and nothing else.
bool is_name(const std::string& name) {
  const fs::path path(name);
  if (name.empty() || path.is_absolute()) return false;
  for (const fs::path& part : path)
    if (part == ".." || part == "." || part.empty()) return false;
  return true;
}

std::string framework_text(const PlanningInputs& inputs) {
  const std::string& file = inputs.framework.file;
  if (file == inputs.site.framework) return read_text_file(file);
  if (const TrainerSpec& trainer = inputs.job.trainer; !trainer.own())
    return trainer.framework.empty() ? trainer_kinds().at(trainer.kind) : read_text_file(file);
  const bool on_gpus = inputs.framework.name == own_framework(Ranks::gpus).name;
  return own_framework_text(on_gpus ? Ranks::gpus : Ranks::processors);
}

}  // namespace

PlanningFiles planning_files(const PlanningInputs& inputs, const SearchRequest& request) {
  PlanningFiles files;
  SiteConfig site = inputs.site;
  site.catalog = "catalog.yaml";
  site.framework = "framework.yaml";
  site.profiles = {"profiles"};
  files[site.catalog] = to_yaml(inputs.catalog);
  files[site.framework] = framework_text(inputs);
  // Profiles are read in the order of their names, and the first one of a GPU type counts.
  for (size_t i = 0; i < inputs.profiles.files.size(); ++i) {
    const std::string& file = inputs.profiles.files[i];
    files[fmt::format("profiles/{:04}-{}", i, fs::path(file).filename().string())] = read_text_file(file);
  }
  for (size_t i = 0; i < inputs.site.calibrations.size(); ++i) {
    site.calibrations[i] = fmt::format("calibrations/{:04}.json", i);
    files[site.calibrations[i]] = read_text_file(inputs.site.calibrations[i]);
  }
  Snapshot snapshot = inputs.snapshot;
  snapshot.queue.clear();  // of the moment
  files["cluster.yaml"] = to_yaml(snapshot);
  files["sailor.yaml"] = to_yaml(site);
  files["options.yaml"] =
      options_yaml(request, plan_options(request, inputs.site).time_limit_s, inputs.overrides);
  return files;
}

PlanningOptions load_planning_options(const std::string& path) {
  const Document document = parse_yaml(read_text_file(path), path);
  std::vector<std::string> known = {"sailor_planning", "search_space", "cost_model", "allow",
                                    "time_limit",      "effort",       "objective"};
  for (const Expense expense : kExpenses) known.push_back(limit_key(expense));
  known.insert(known.end(), {"min_iterations_per_s", "max_gpus", "zones", "partitions"});
  MapField map(Field(document), known);
  require_version(map, "sailor_planning", 1);
  PlanningOptions out;
  out.request.space = parse_search_space(map.required("search_space").text());
  out.request.cost_model = parse_cost_model(map.required("cost_model").text());
  out.request.time_limit_s = map.required("time_limit").duration_s();
  if (const auto effort = map.optional("effort")) out.request.effort = effort->positive();
  if (const auto allow = map.optional("allow")) out.request.allow = parse_plan_features(allow->text());
  if (const auto objective = map.optional("objective"))
    out.overrides.objective = parse_objective(objective->text());
  for (const Expense expense : kExpenses)
    if (const auto most = map.optional(limit_key(expense))) out.overrides.most[expense] = most->positive();
  if (const auto rate = map.optional("min_iterations_per_s"))
    out.overrides.min_iterations_per_s = rate->positive();
  if (const auto limits = map.optional("max_gpus"))
    for (const auto& [type, count] : limits->entries())
      out.overrides.max_gpus[type] = count.integer<int>(0, 1'000'000);
  out.overrides.zones = read_names(map.optional("zones"));
  out.overrides.partitions = read_names(map.optional("partitions"));
  return out;
}

void write_planning(const std::string& directory, const PlanningFiles& files) {
  const std::string path = directory + "/planning", made = path + ".new", aside = path + ".old";
  std::error_code error;
  fs::remove_all(aside, error);
  if (files.empty()) {
    fs::remove_all(path, error);
    return;
  }
  write_files(made, files);
  if (const std::string older = replace_directory(made, path, aside); !older.empty())
    fs::remove_all(older, error);
}

std::string planning_of(const std::string& directory) {
  const std::string path = directory + "/planning";
  std::error_code error;
  return fs::exists(path + "/sailor.yaml", error) ? path : "";
}

std::string to_json(const PlanningFiles& files) {
  return nlohmann::json(files).dump();
}

PlanningFiles parse_planning_files(const std::string& json, const std::string& source) {
  const nlohmann::json parsed = nlohmann::json::parse(json, nullptr, false);
  if (!parsed.is_object()) throw InputError({source}, "is not a JSON object of files");
  PlanningFiles files;
  for (const auto& [name, text] : parsed.items()) {
    if (!is_name(name) || !text.is_string()) throw InputError({source}, "is not a JSON object of files");
    files[name] = text.get<std::string>();
  }
  return files;
}

}  // namespace sailor
