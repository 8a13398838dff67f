#include "tests/bench/set_outcomes.h"

#include <filesystem>
#include <memory>

#include "planner/simulator/run_prediction.h"
#include "planner/spec/error.h"
#include "tests/bench/calibration_recipe.h"
#include "tests/convert/sailor_profiles.h"

namespace sailor::bench {
namespace {

// Rows that the data's README tells apart: one microbatch only, and a run whose times contradict one another.
bool is_stated_separately(const std::string& set, const MeasuredRun& record) {
  if (set != "sailor") return false;
  return record.plan.global_batch <= record.plan.microbatch || record.name.find("N4_D4") != std::string::npos;
}

bool is_doubtful_memory(const std::string& set, const MeasuredRun& record) {
  if (set != "sailor") return false;
  return record.name.find("GPT-NEO/N8/plan_config_N8_D2") != std::string::npos ||
         (record.platform == "mit" && record.plan.pipelines[0].stages[0].shape.tp == 2);
}

}  // namespace

Predict predictor(const std::string& set, const std::string& reference, const Assumptions& assumptions) {
  using Profiles = std::map<std::string, ProfileSet>;
  const auto measured = std::make_shared<const Profiles>(
      set == "sailor" ? convert::sailor_profiles(reference, assumptions) : Profiles{});
  return [measured](const MeasuredRun& record, const Assumptions& with) {
    const auto profiles = measured->find(record.model);
    return predict_run(record, with, profiles == measured->end() ? nullptr : &profiles->second);
  };
}

Assumptions calibrated(const std::string& set, Assumptions assumptions, const std::string& directory,
                       bool own) {
  const auto apply_shipped = [&](const std::string& name) {
    const std::string shipped = directory + "/calibration/" + name + ".json";
    if (std::filesystem::exists(shipped)) apply(load_calibration(shipped), assumptions);
  };
  if (set == "vtrain-multi") apply_shipped("vtrain-single");  // it builds on the constants of single nodes
  if (own) apply_shipped(set);
  return assumptions;
}

std::string part_of(const std::string& set, const MeasuredRun& record) {
  if (set == "sailor") return record.platform + "/" + record.model;
  if (set == "amp" || set == "bigscience" || set == "ultrascale") return record.model;
  if (set == "mosaic") return record.plan.pipelines[0].stages[0].gpu_type;
  return "";
}

std::vector<MeasuredRun> scored(const std::string& set, std::vector<MeasuredRun> records) {
  for (MeasuredRun& record : records) {
    if (is_stated_separately(set, record)) record.iteration_s.clear();
    if (is_doubtful_memory(set, record)) record.peak_memory_bytes.clear();
  }
  return records;
}

SetOutcomes outcomes_of(const std::string& set, const std::vector<MeasuredRun>& records,
                        const Assumptions& assumptions, const Predict& predict) {
  SetOutcomes out;
  for (const MeasuredRun& record : records) {
    RunOutcome outcome;
    try {
      outcome = make_outcome(record, predict(record, assumptions));
    } catch (const InputError& error) {
      out.refused.push_back(error.what());
      continue;
    }
    out.as_measured.push_back(outcome);
    if (is_doubtful_memory(set, record)) outcome.measured_bytes.reset();
    if (is_stated_separately(set, record)) {
      out.timed_apart.push_back(outcome);
      outcome.measured_s.reset();
    }
    out.all.push_back(outcome);
    if (const std::string part = part_of(set, record); !part.empty()) out.parts[part].push_back(outcome);
  }
  return out;
}

std::vector<CalibratedOnTenth> calibrated_on_tenth(const std::string& set,
                                                   const std::vector<MeasuredRun>& records,
                                                   Assumptions assumptions, const Predict& predict,
                                                   size_t k) {
  for (auto& [name, platform] : assumptions.platforms) {
    Platform hardware;
    hardware.name = platform.name;
    hardware.file = platform.file;
    hardware.gpus_per_node = platform.gpus_per_node;
    hardware.links = platform.links;
    platform = hardware;
  }
  std::map<std::string, std::vector<MeasuredRun>> by_framework;
  for (const MeasuredRun& record : scored(set, records))
    if (record.ran && record.measured_s()) by_framework[record.framework].push_back(record);
  std::vector<CalibratedOnTenth> all;
  for (const auto& [framework, runs] : by_framework) {
    std::vector<MeasuredRun> tenth, others;
    for (size_t i = 0; i < runs.size(); ++i) (i % 10 == k ? tenth : others).push_back(runs[i]);
    if (tenth.empty()) continue;
    CalibratedOnTenth out;
    out.framework = framework;
    out.constants =
        fit_constants(tenth, free_constants(tenth, assumptions.framework(framework), assumptions, false),
                      assumptions, predict, false);
    Assumptions fitted = assumptions;
    for (const auto& [path, value] : out.constants) set_constant(fitted, path, value);
    out.described = outcomes_of(set, others, assumptions, predict).all;
    out.calibrated = outcomes_of(set, others, fitted, predict).all;
    all.push_back(std::move(out));
  }
  return all;
}

std::map<std::string, std::vector<RunOutcome>> leave_one_out(const std::string& set,
                                                             const std::vector<MeasuredRun>& records,
                                                             const Assumptions& assumptions,
                                                             const Predict& predict) {
  const CalibrationRecipe recipe = recipe_of(set);
  const std::vector<MeasuredRun> rows = scored(set, records);
  std::map<std::string, std::vector<RunOutcome>> parts;
  for (size_t left_out = 0; left_out < rows.size(); ++left_out) {
    std::vector<MeasuredRun> others = rows;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(left_out));
    Assumptions with = assumptions;
    apply(calibrate(set, "", recipe, others, assumptions, predict), with);
    parts[part_of(set, rows[left_out])].push_back(
        make_outcome(rows[left_out], predict(rows[left_out], with)));
  }
  return parts;
}

}  // namespace sailor::bench
