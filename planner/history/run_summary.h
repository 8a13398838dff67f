// How a run has ended and what it came to: summary.json of its directory, written by the controller and read
// by whoever asks about the run. Value types; to_json() then read_run_summary() gives the same summary.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "planner/history/validation_losses.h"
#include "planner/plan/measured_run.h"
#include "planner/plan/plan.h"
#include "planner/spec/job_spec.h"

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
  std::string status;      // finished | continued | failed | cancelled
  std::string error;       // of a failed or cancelled run
  std::string next_job{};  // that continues the training
  std::string moved{};     // "planned for a1, runs on a2"; empty: on the planned nodes
  bool emulated = false;
  int64_t steps = 0;
  std::optional<double> first_loss;
  std::optional<double> last_loss;
  ValidationLosses validation;  // the last one
  double unigram_entropy = 0;   // of the data, nats per token: a model that learned anything is below it
  std::string catalog;  // file of GPU types that the run was planned with; empty without a site config
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

// A few lines for people.
std::string summary_text(const RunSummary& summary);
// `"sailor_run_summary": 1`
std::string summary_json(const RunSummary& summary);
// Nothing when there is no such file, or it is torn because it is being written. What it does not say, or is
// null, is as in an empty summary.
std::optional<RunSummary> read_run_summary(const std::string& file);

// The run as something that predictions are compared with. Step time is the median of the steps after the
// warm-up, memory the peak of the fullest rank; what was not measured stays out. Throws InputError when the
// family of the job's model has no known shape.
MeasuredRun measured_run(const RunSummary& summary, const JobSpec& job, const Plan& plan);

}  // namespace sailor
