// sailor calibrate: fits the constants of predictions to measured runs.
#include "planner/simulator/calibrate.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "planner/cli/commands.h"
#include "planner/cli/data_directory.h"
#include "planner/cli/output.h"
#include "planner/cli/site_predictor.h"
#include "planner/report/calibration_table.h"
#include "planner/simulator/run_prediction.h"
#include "planner/spec/error.h"
#include "planner/spec/text.h"
#include "planner/spec/text_file.h"

namespace sailor::cli {
namespace {

constexpr size_t kFolds = 5;

// The measured runs of the framework. Those that ran out of memory or were not timed say nothing here.
std::vector<MeasuredRun> runs_of(const CalibrateCommand& command, std::vector<MeasuredRun> records) {
  std::set<std::string> frameworks;
  for (const MeasuredRun& record : records) frameworks.insert(record.framework);
  const std::string framework = command.framework.empty() ? *frameworks.begin() : command.framework;
  if (command.framework.empty() && frameworks.size() > 1)
    throw InputError({command.dataset, 0},
                     fmt::format("has runs of {} frameworks ({}): name one with --framework",
                                 frameworks.size(), fmt::join(frameworks, ", ")));
  std::erase_if(records, [&](const MeasuredRun& record) {
    return record.framework != framework || !record.ran || !record.measured_s();
  });
  if (records.empty())
    throw InputError({command.dataset, 0}, "has no measured time of a run of " + in_quotes(framework));
  return records;
}

// Those that can be predicted at all.
std::vector<MeasuredRun> predictable(const std::vector<MeasuredRun>& runs, const Assumptions& assumptions,
                                     const PredictRun& predict) {
  std::vector<MeasuredRun> out;
  std::vector<std::string> reasons;
  for (const MeasuredRun& run : runs) {
    try {
      predict(run, assumptions);
      out.push_back(run);
    } catch (const InputError& error) {
      reasons.emplace_back(error.what());
    }
  }
  if (out.empty()) throw InputError(reasons.front());
  if (!reasons.empty())
    diagnose(fmt::format("not used: {} run{} without a prediction; the first: {}", reasons.size(),
                         reasons.size() == 1 ? "" : "s", reasons.front()));
  return out;
}

std::vector<RunOutcome> outcomes_of(const std::vector<MeasuredRun>& runs, const Assumptions& assumptions,
                                    const PredictRun& predict) {
  std::vector<RunOutcome> outcomes;
  for (const MeasuredRun& run : runs) outcomes.push_back(make_outcome(run, predict(run, assumptions)));
  return outcomes;
}

void set_all(const std::map<std::string, double>& values, Assumptions& assumptions) {
  for (const auto& [path, value] : values) set_constant(assumptions, path, value);
}

// Every run predicted with constants that were fitted to the other folds.
std::vector<RunOutcome> outcomes_left_out(const std::vector<MeasuredRun>& runs,
                                          const std::vector<FreeConstant>& constants,
                                          const Assumptions& assumptions, const PredictRun& predict,
                                          bool memory) {
  std::vector<RunOutcome> outcomes;
  const size_t folds = std::min(kFolds, runs.size());
  for (size_t fold = 0; folds > 1 && fold < folds; ++fold) {
    std::vector<MeasuredRun> others, left_out;
    for (size_t i = 0; i < runs.size(); ++i) (i % folds == fold ? left_out : others).push_back(runs[i]);
    Assumptions with = assumptions;
    set_all(fit_constants(others, constants, assumptions, predict, memory), with);
    for (RunOutcome& outcome : outcomes_of(left_out, with, predict)) outcomes.push_back(std::move(outcome));
  }
  return outcomes;
}

}  // namespace

int run_calibrate(const CalibrateCommand& command) {
  std::vector<MeasuredRun> runs = runs_of(command, load_checked_runs(command.dataset));
  Assumptions assumptions =
      load_assumptions(command.assumptions.empty() ? assumptions_directory() : command.assumptions);
  const FrameworkStyle& framework = assumptions.framework(runs.front().framework);
  SitePredictor site(command.config);
  site.add_site(runs, assumptions);
  const PredictRun predict = [&site](const MeasuredRun& run, const Assumptions& with) {
    return site.predict_estimated(run, with);
  };
  runs = predictable(runs, assumptions, predict);
  if (!command.memory)
    for (MeasuredRun& run : runs) run.peak_memory_bytes.clear();
  const bool memory = std::any_of(runs.begin(), runs.end(),
                                  [](const MeasuredRun& run) { return run.measured_bytes().has_value(); });

  FittedConstants fitted;
  fitted.framework = framework.name;
  fitted.constants = free_constants(runs, framework, assumptions, memory);
  fitted.described = outcomes_of(runs, assumptions, predict);
  fitted.left_out = outcomes_left_out(runs, fitted.constants, assumptions, predict, memory);
  fitted.values = fit_constants(runs, fitted.constants, assumptions, predict, memory);
  Assumptions with = assumptions;
  set_all(fitted.values, with);
  fitted.calibrated = outcomes_of(runs, with, predict);

  const Calibration calibration = calibration_of(fitted, command.dataset);
  if (!command.output.empty()) write_file_atomically(command.output, to_json(calibration));
  print(command.format == Format::json ? to_json(calibration) : calibration_table(fitted));
  return kDone;
}

}  // namespace sailor::cli
