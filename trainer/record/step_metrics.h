// The metrics of a step as a printed line, JSON and CSV, and summaries over the steps of a run. Pure
// functions over value types; callers print and write.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trainer/control/control_message.h"

namespace sailor {

// Constants of all steps of a run.
struct StepFacts {
  int64_t steps = 0;
  int64_t tokens = 0;                  // of one step
  double flops = 0;                    // of one step; 0 = unknown
  std::optional<double> peak_flops{};  // per second, of all GPUs (model_flops.h)

  // Model FLOPs utilization, 0 to 1, of a step with this duration.
  std::optional<double> mfu(double step_s) const;
};

// `step 12/1000 | loss 5.3120 | norm 1.210 | lr 3.0e-04 | 812 ms | 5044 tok/s | MFU 41.3 %`; `val 5.4012`
// (perplexity 221.7)` follows the loss if it was computed, and an unknown MFU is `-`. With a loss scale,
// `scale 65536` follows the learning rate, and `(overflow, skipped)` or `(spike, skipped)` if nothing was
// updated.
std::string step_line(const StepReport& report, const StepFacts& facts);
// One line of JSON; unknown values are null. A z-loss and a loss scale are mentioned if the job has them.
std::string step_json(const StepReport& report, const StepFacts& facts);
// One line of CSV; unknown values are empty.
std::string step_csv_header();
std::string step_csv(const StepReport& report, const StepFacts& facts);

// The median of the steps after the warm-up: the first three steps, or fewer if the run is shorter, so that
// at least one step remains.
std::optional<double> steady_iteration_s(const std::vector<double>& steps_s);
// The mean of the same steps.
std::optional<double> mean_iteration_s(const std::vector<double>& steps_s);

}  // namespace sailor
