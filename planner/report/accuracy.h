// Accuracy of predictions: errors, rank correlation and the oracle gap. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "planner/plan/measured_run.h"
#include "planner/simulator/prediction.h"

namespace sailor {

// A run, predicted and measured. Values that were not measured are absent.
struct RunOutcome {
  std::string row;
  std::string model;
  std::string group;  // runs to choose among: same model, global batch and GPUs
  std::optional<double> predicted_s, measured_s;
  std::optional<double> predicted_bytes, measured_bytes;
  std::optional<double> other_prediction_s;  // another simulator's
  bool fits = true;                          // predicted
  bool ran = true;                           // measured
  std::string note;                          // reason if there is no prediction
};

RunOutcome make_outcome(const MeasuredRun& record, const Prediction& prediction);
// The same model, global batch and number of GPUs by type: the plans that a user chooses among.
std::string choice_group(const MeasuredRun& record);

// Relative error; positive if predicted above measured.
double error_pct(double predicted, double measured);

struct ErrorSummary {
  size_t n = 0;  // the values are of absolute relative errors; 0 without rows
  double mean_pct = 0, median_pct = 0, p95_pct = 0, max_pct = 0;
};
struct Pair {
  double predicted, measured;
};
ErrorSummary summarize(const std::vector<Pair>& pairs);
// The q-quantile by linear interpolation; 0 without values.
double quantile(std::vector<double> values, double q);

// Spearman's rank correlation, with mean ranks for ties; nothing with fewer than three pairs or if one side
// is constant.
std::optional<double> rank_correlation(const std::vector<Pair>& pairs);

// Median over the groups with at least two runs of (measured time of the run that is predicted fastest / the
// fastest measured - 1) in percent; nothing without such a group. A run that is predicted not to fit is only
// chosen if no other is left.
std::optional<double> oracle_gap_pct(const std::vector<RunOutcome>& outcomes);

std::vector<Pair> time_pairs(const std::vector<RunOutcome>& outcomes);
std::vector<Pair> other_time_pairs(const std::vector<RunOutcome>& outcomes);
std::vector<Pair> memory_pairs(const std::vector<RunOutcome>& outcomes);

}  // namespace sailor
