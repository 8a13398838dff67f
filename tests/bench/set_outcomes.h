// Predictions of the runs of a data set, and the measured values that are scored. The rules of the sets are
// in set_outcomes.cpp; they come from the READMEs of the data.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "planner/profile/profile_set.h"
#include "planner/report/accuracy.h"
#include "planner/simulator/assumptions.h"
#include "planner/simulator/calibrate.h"

namespace sailor::bench {

using Predict = PredictRun;

// A predictor of the set's runs; `reference` is the data pack with the layer profiles of the set `sailor`;
// other sets need none.
Predict predictor(const std::string& set, const std::string& reference, const Assumptions& assumptions);

// `assumptions` with the shipped calibrations that the set builds on, and its own unless `own` is false.
// Files are in DIRECTORY/calibration.
Assumptions calibrated(const std::string& set, Assumptions assumptions, const std::string& directory,
                       bool own = true);

// Parts of a set that are scored separately; "" if the set has none.
std::string part_of(const std::string& set, const MeasuredRun& record);

// The runs with the scored values only: the data for fitting constants.
std::vector<MeasuredRun> scored(const std::string& set, std::vector<MeasuredRun> records);

struct SetOutcomes {
  std::vector<RunOutcome> as_measured;  // every run that can be predicted, with all its values
  std::vector<RunOutcome> all;          // the same runs with scored values only
  std::vector<RunOutcome> timed_apart;  // runs whose times are not scored, with their times
  std::map<std::string, std::vector<RunOutcome>> parts;  // of `all`
  std::vector<std::string> refused;                      // why a run has no prediction, one line each
};
SetOutcomes outcomes_of(const std::string& set, const std::vector<MeasuredRun>& records,
                        const Assumptions& assumptions, const Predict& predict);

// Every tenth run of a framework, from the `k`-th, calibrates as `sailor calibrate` does; the others are
// scored. Nothing but the hardware is known: GPU types, links, and GPUs of a node.
struct CalibratedOnTenth {
  std::string framework;
  std::map<std::string, double> constants;
  std::vector<RunOutcome> described, calibrated;  // before and after
};
std::vector<CalibratedOnTenth> calibrated_on_tenth(const std::string& set,
                                                   const std::vector<MeasuredRun>& records,
                                                   Assumptions assumptions, const Predict& predict, size_t k);

// Predicts every run with constants that were fitted to all others, by part.
std::map<std::string, std::vector<RunOutcome>> leave_one_out(const std::string& set,
                                                             const std::vector<MeasuredRun>& records,
                                                             const Assumptions& assumptions,
                                                             const Predict& predict);

}  // namespace sailor::bench
