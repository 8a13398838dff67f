// How good predictions are: errors, rank correlation and the oracle gap. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "planner/plan/run_record.h"
#include "planner/simulator/prediction.h"

namespace sailor {

// One run, predicted and measured. What was not measured, or failed when it ran, is absent.
struct RunOutcome {
  std::string row;
  std::string model;
  std::string group;  // runs among which one would choose: same model, global batch and GPUs
  std::optional<double> predicted_s, measured_s;
  std::optional<double> predicted_bytes, measured_bytes;
  std::optional<double> other_prediction_s;  // another simulator's
  bool fits = true;                          // predicted
  bool ran = true;                           // measured
  std::string note;                          // why there is no prediction
};

RunOutcome make_outcome(const RunRecord& record, const Prediction& prediction);
// The same model, global batch and number of GPUs by type: what a user would choose a plan among.
std::string choice_group(const RunRecord& record);

// Relative error, predicted above measured positive.
double error_pct(double predicted, double measured);

struct ErrorSummary {
  size_t n = 0;  // the figures are of absolute relative errors; without rows they are 0
  double mean_pct = 0, median_pct = 0, p95_pct = 0, max_pct = 0;
};
struct Pair {
  double predicted, measured;
};
ErrorSummary summarize(const std::vector<Pair>& pairs);
// The q-quantile by linear interpolation; 0 of nothing.
double quantile(std::vector<double> values, double q);

// Spearman's rank correlation, ties by their mean rank; nothing with fewer than three pairs or when one side
// is constant.
std::optional<double> rank_correlation(const std::vector<Pair>& pairs);

// Median over the groups with two runs or more of (measured time of the run that is predicted fastest / the
// fastest measured - 1) in percent; nothing without such a group. A run that is predicted not to fit is not
// chosen while another is.
std::optional<double> oracle_gap_pct(const std::vector<RunOutcome>& outcomes);

std::vector<Pair> time_pairs(const std::vector<RunOutcome>& outcomes);
std::vector<Pair> other_time_pairs(const std::vector<RunOutcome>& outcomes);
std::vector<Pair> memory_pairs(const std::vector<RunOutcome>& outcomes);

}  // namespace sailor
