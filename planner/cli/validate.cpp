// sailor validate: compares predictions with measured runs.
#include <fmt/format.h>

#include "planner/cli/commands.h"
#include "planner/cli/data_directory.h"
#include "planner/cli/output.h"
#include "planner/cli/site_predictor.h"
#include "planner/plan/measured_run.h"
#include "planner/profile/layer_profile.h"
#include "planner/report/validation_table.h"
#include "planner/spec/error.h"
#include "planner/spec/text_file.h"

namespace sailor::cli {
namespace {

constexpr size_t kMostReasons = 20;

ValidatedRun validate_run(const MeasuredRun& record, const Assumptions& assumptions, SitePredictor& site) {
  std::string reason;
  const std::optional<SitePredictor::Predicted> predicted = site.predict(record, assumptions, reason);
  ValidatedRun run;
  run.where = record.where;
  run.outcome = make_outcome(record, predicted ? predicted->prediction : Prediction{});
  if (predicted) {
    run.estimated = predicted->estimated;
    return run;
  }
  run.outcome.predicted_s.reset();
  run.outcome.predicted_bytes.reset();
  const std::string place = record.where.text();
  run.outcome.note = reason.starts_with(place) ? reason : place + ": " + reason;
  return run;
}

void print_reasons(const Validation& validation) {
  size_t told = 0, untold = 0;
  for (const ValidatedRun& run : validation.runs) {
    if (run.outcome.predicted_s) continue;
    if (told < kMostReasons) {
      diagnose("no prediction: " + run.outcome.note);
      ++told;
    } else {
      ++untold;
    }
  }
  if (untold > 0)
    diagnose(fmt::format("no prediction of {} more runs: --format json has the reasons", untold));
}

std::string in_format(const Validation& validation, Format format) {
  switch (format) {
    case Format::json:
      return validation_json(validation);
    case Format::csv:
      return validation_csv(validation);
    default:  // no others are offered
      return validation_table(validation);
  }
}

}  // namespace

int run_validate(const ValidateCommand& command) {
  const std::vector<MeasuredRun> records = load_checked_runs(command.dataset);
  Assumptions assumptions =
      load_assumptions(command.assumptions.empty() ? assumptions_directory() : command.assumptions);
  SitePredictor site(command.config);
  site.add_site(records, assumptions);
  for (const std::string& file : command.calibrations) apply(load_calibration(file), assumptions);

  Validation validation{command.dataset, command.calibrations, {}};
  for (const MeasuredRun& record : records)
    validation.runs.push_back(validate_run(record, assumptions, site));
  print_reasons(validation);
  if (validation.num_predicted() == 0 && command.format != Format::json) return kFailed;
  print(in_format(validation, command.format));
  if (!command.svg.empty()) {
    write_file_atomically(command.svg, scatter_svg(command.dataset + ": predicted against measured",
                                                   "s per iteration", validation_scatter(validation)));
  }
  return validation.num_predicted() == 0 ? kFailed : kDone;
}

}  // namespace sailor::cli
