// Which constants a data set calibrates, and on which of its rows. The rule is one that any file of the set's
// kind obeys: no row is chosen for what it says.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "planner/plan/run_record.h"
#include "planner/simulator/assumptions.h"
#include "planner/simulator/prediction.h"

namespace sailor::bench {

// A constant with what is believed of it before any row is seen: a factor of e^width either way is usual.
struct FreeConstant {
  std::string path;
  double expected;
  double width;
};

struct CalibrationRecipe {
  std::string rule;                // for people
  size_t every = 11, offset = 10;  // rows: index % every == offset, of those that ran
  bool with_memory = false;        // peak memory is fitted beside the time
  std::vector<FreeConstant> constants;
};

// Throws InputError for a set that is not calibrated.
CalibrationRecipe recipe_of(const std::string& set);
// One residual per measured figure is ln(predicted / measured) / 5 %, softened beyond 1; the prior of each
// constant is one more. What a record does not hold as measured is not fitted. `predict` is asked with the
// assumptions under trial.
Calibration calibrate(const std::string& set, const std::string& data, const CalibrationRecipe& recipe,
                      const std::vector<RunRecord>& records, const Assumptions& assumptions,
                      const std::function<Prediction(const RunRecord&, const Assumptions&)>& predict);

}  // namespace sailor::bench
