// What a run measured, and how it is shown: the line per step, the JSON of the same, the summary at the end.
// Pure functions over value types; printing and writing are the controller's.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "planner/plan/plan.h"
#include "planner/spec/job_spec.h"
#include "trainer/control/control_message.h"

namespace sailor {

// One rank at the end of the run.
struct RankSummary {
  int rank = 0;
  std::string node;
  std::string gpu_type;
  int pipeline = 0;
  int stage = 0;
  int64_t peak_rss_bytes = 0;
  int max_in_flight = 0;
  int in_flight_limit = 0;
  int64_t paced_tasks = 0;
  int64_t overrun_tasks = 0;
  double overrun_s = 0;
  double paced_s = 0;
};

struct RunSummary {
  std::string job_id;
  std::string status;  // finished | failed | cancelled
  std::string error;   // of a failed run
  bool emulated = false;
  int64_t steps = 0;
  std::optional<double> first_loss;
  std::optional<double> last_loss;
  std::optional<double> validation_loss;  // the last one
  double unigram_entropy = 0;  // of the data, nats per token: a model that learned anything is below it
  std::string catalog;         // file of GPU types that the run was planned with; empty without a site config
  std::vector<std::string> profiles;            // directories of layer and network profiles
  std::optional<double> measured_iteration_s;   // median, warm-up steps left out
  std::optional<double> mean_iteration_s;       // mean of the same steps
  std::optional<double> predicted_iteration_s;  // the plan's promise
  std::optional<double> tokens_per_s;
  std::optional<double> mfu;  // of the measured iteration
  double training_s = 0;      // from the first step's start to the last one's end
  std::vector<RankSummary> ranks;

  // (predicted - measured) / measured in percent.
  std::optional<double> prediction_error_pct() const;
};

// What every step of a run has in common.
struct StepFacts {
  int64_t steps = 0;
  int64_t tokens = 0;                  // of one step
  double flops = 0;                    // of one step; 0 = unknown
  std::optional<double> peak_flops{};  // per second, of all GPUs (model_flops.h)

  // Model FLOPs utilization, 0 to 1, of a step that took so long.
  std::optional<double> mfu(double step_s) const;
};

// `step 12/1000 | loss 5.3120 | norm 1.210 | lr 3.0e-04 | 812 ms | 5044 tok/s | MFU 41.3 %`; `val 5.4012`
// follows the loss when it was computed, and an MFU that is not known is `-`.
std::string step_line(const StepReport& report, const StepFacts& facts);
// The same as one line of JSON; unknown values are null.
std::string step_json(const StepReport& report, const StepFacts& facts);
// The same as a line of CSV; unknown values are empty.
std::string step_csv_header();
std::string step_csv(const StepReport& report, const StepFacts& facts);

// The median of the steps after the warm-up: the first three steps, or fewer when the run is so short that
// nothing would be left.
std::optional<double> steady_iteration_s(const std::vector<double>& steps_s);
// The mean of the same steps.
std::optional<double> mean_iteration_s(const std::vector<double>& steps_s);

// Two columns: what is trained, with which settings, on which GPUs.
// `data` describes what is trained on.
std::string settings_table(const JobSpec& job, const Plan& plan, const std::string& data,
                           double unigram_entropy, bool emulated, const std::string& directory);
// A few lines for people.
std::string summary_text(const RunSummary& summary);
// `"sailor_run_summary": 1`
std::string summary_json(const RunSummary& summary);

}  // namespace sailor
