// Predictions compared with measured runs: a summary for people, and the same for programs. Pure.
#pragma once

#include <string>
#include <vector>

#include "planner/report/accuracy.h"
#include "planner/report/scatter_svg.h"

namespace sailor {

struct ValidatedRun {
  RunOutcome outcome;  // without a prediction, its note has the reason
  Where where;
  bool estimated = false;  // layer times come from the catalog and the model's shape, not from a profile
};

struct Validation {
  std::string dataset;
  std::vector<std::string> calibrations;  // files
  std::vector<ValidatedRun> runs;

  size_t num_predicted() const;
};

// Errors by model and over all runs, then the runs with the largest errors. Ends in a newline.
std::string validation_table(const Validation& validation);
// `"sailor_validation": 1`; the schema is in etc/doc/formats.md.
std::string validation_json(const Validation& validation);
// A header and a line per predicted run.
std::string validation_csv(const Validation& validation);
// Times by model; with more models than a legend can distinguish, the smallest share the last series.
std::vector<ScatterSeries> validation_scatter(const Validation& validation);

}  // namespace sailor
