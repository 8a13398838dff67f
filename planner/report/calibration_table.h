// What `sailor calibrate` found: the errors of predictions before and after, and the constants. Pure.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "planner/report/accuracy.h"
#include "planner/simulator/assumptions.h"
#include "planner/simulator/calibrate.h"

namespace sailor {

struct FittedConstants {
  std::string framework;
  std::vector<FreeConstant> constants;
  std::map<std::string, double> values;  // by path, one for each of the constants
  // The same runs: predicted as the framework is described, with the constants, and with constants that were
  // fitted to other runs only (empty for a single run).
  std::vector<RunOutcome> described, calibrated, left_out;
};

// `dataset` names the runs.
Calibration calibration_of(const FittedConstants& fitted, const std::string& dataset);
// Ends in a newline.
std::string calibration_table(const FittedConstants& fitted);

}  // namespace sailor
