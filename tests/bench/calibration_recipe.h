// The constants that a data set calibrates, and the rows used. The rule applies to any file of the set's
// kind: no row is selected by its values.
#pragma once

#include <string>
#include <vector>

#include "planner/plan/measured_run.h"
#include "planner/simulator/assumptions.h"
#include "planner/simulator/calibrate.h"

namespace sailor::bench {

struct CalibrationRecipe {
  std::string rule;                // for people
  size_t every = 11, offset = 10;  // rows: index % every == offset, of the successful ones
  bool with_memory = false;        // also fit peak memory
  std::vector<FreeConstant> constants;
};

// Throws InputError for a set that is not calibrated.
CalibrationRecipe recipe_of(const std::string& set);
// Fits the constants to the rows of the rule. `predict` is called with trial assumptions.
Calibration calibrate(const std::string& set, const std::string& data, const CalibrationRecipe& recipe,
                      const std::vector<MeasuredRun>& records, const Assumptions& assumptions,
                      const PredictRun& predict);

}  // namespace sailor::bench
