// The constants that a data set calibrates, and the rows used. The rule applies to any file of the set's
// kind: no row is selected by its values.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "planner/plan/measured_run.h"
#include "planner/simulator/assumptions.h"
#include "planner/simulator/prediction.h"

namespace sailor::bench {

// A constant with its prior: a factor of e^width either way is usual.
struct FreeConstant {
  std::string path;
  double expected;
  double width;
};

struct CalibrationRecipe {
  std::string rule;                // for people
  size_t every = 11, offset = 10;  // rows: index % every == offset, of the successful ones
  bool with_memory = false;        // also fit peak memory
  std::vector<FreeConstant> constants;
};

// Throws InputError for a set that is not calibrated.
CalibrationRecipe recipe_of(const std::string& set);
// One residual per measured value is ln(predicted / measured) / 5 %, softened beyond 1; the prior of each
// constant is one more. Values that a record does not have are not fitted. `predict` is called with trial
// assumptions.
Calibration calibrate(const std::string& set, const std::string& data, const CalibrationRecipe& recipe,
                      const std::vector<MeasuredRun>& records, const Assumptions& assumptions,
                      const std::function<Prediction(const MeasuredRun&, const Assumptions&)>& predict);

}  // namespace sailor::bench
