#include "planner/report/accuracy.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "planner/simulator/run_prediction.h"

namespace sailor {
namespace {

// Ranks from 1, equal values share the mean of theirs.
std::vector<double> ranks(const std::vector<double>& values) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return values[a] < values[b]; });
  std::vector<double> ranks(values.size());
  for (size_t begin = 0; begin < order.size();) {
    size_t end = begin;
    while (end < order.size() && values[order[end]] == values[order[begin]]) ++end;
    for (size_t i = begin; i < end; ++i) ranks[order[i]] = static_cast<double>(begin + end + 1) / 2;
    begin = end;
  }
  return ranks;
}

}  // namespace

std::string choice_group(const MeasuredRun& record) {
  std::map<std::string, int> gpus;
  for (const PlanPipeline& pipeline : record.plan.pipelines)
    for (const PlanStage& stage : pipeline.stages) gpus[stage.gpu_type] += stage.shape.gpus();
  std::string group = fmt::format("{} batch {}", record.model, record.plan.global_batch);
  for (const auto& [type, count] : gpus) group += fmt::format(" {}x{}", count / record.plan.interleave, type);
  return group;
}

RunOutcome make_outcome(const MeasuredRun& record, const Prediction& prediction) {
  RunOutcome outcome;
  outcome.row = record.name;
  outcome.model = record.model;
  outcome.group = choice_group(record);
  outcome.predicted_s = prediction.iteration_s;
  outcome.predicted_bytes = static_cast<double>(predicted_peak_bytes(record, prediction));
  outcome.measured_s = record.measured_s();
  outcome.measured_bytes = record.measured_bytes();
  outcome.other_prediction_s = record.other_prediction_s;
  outcome.fits = prediction.fits;
  outcome.ran = record.ran;
  return outcome;
}

double error_pct(double predicted, double measured) {
  return (predicted / measured - 1) * 100;
}

double quantile(std::vector<double> values, double q) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const double at = q * static_cast<double>(values.size() - 1);
  const auto below = static_cast<size_t>(at);
  const size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (at - static_cast<double>(below)) * (values[above] - values[below]);
}

ErrorSummary summarize(const std::vector<Pair>& pairs) {
  std::vector<double> errors;
  for (const Pair& pair : pairs) errors.push_back(std::fabs(error_pct(pair.predicted, pair.measured)));
  if (errors.empty()) return {};
  const double sum = std::accumulate(errors.begin(), errors.end(), 0.0);
  return {errors.size(), sum / static_cast<double>(errors.size()), quantile(errors, 0.5),
          quantile(errors, 0.95), quantile(errors, 1)};
}

std::optional<double> rank_correlation(const std::vector<Pair>& pairs) {
  if (pairs.size() < 3) return std::nullopt;
  std::vector<double> predicted, measured;
  for (const Pair& pair : pairs) {
    predicted.push_back(pair.predicted);
    measured.push_back(pair.measured);
  }
  predicted = ranks(predicted);
  measured = ranks(measured);
  const double mean = static_cast<double>(pairs.size() + 1) / 2;
  double together = 0, of_predicted = 0, of_measured = 0;
  for (size_t i = 0; i < pairs.size(); ++i) {
    together += (predicted[i] - mean) * (measured[i] - mean);
    of_predicted += (predicted[i] - mean) * (predicted[i] - mean);
    of_measured += (measured[i] - mean) * (measured[i] - mean);
  }
  if (of_predicted == 0 || of_measured == 0) return std::nullopt;
  return together / std::sqrt(of_predicted * of_measured);
}

std::optional<double> oracle_gap_pct(const std::vector<RunOutcome>& outcomes) {
  std::map<std::string, std::vector<const RunOutcome*>> groups;
  for (const RunOutcome& outcome : outcomes)
    if (outcome.ran && outcome.predicted_s && outcome.measured_s) groups[outcome.group].push_back(&outcome);
  std::vector<double> gaps;
  for (const auto& [name, group] : groups) {
    if (group.size() < 2) continue;
    const auto chosen =
        std::min_element(group.begin(), group.end(), [](const RunOutcome* a, const RunOutcome* b) {
          return std::pair(!a->fits, *a->predicted_s) < std::pair(!b->fits, *b->predicted_s);
        });
    const auto best = std::min_element(
        group.begin(), group.end(),
        [](const RunOutcome* a, const RunOutcome* b) { return *a->measured_s < *b->measured_s; });
    gaps.push_back(error_pct(*(*chosen)->measured_s, *(*best)->measured_s));
  }
  if (gaps.empty()) return std::nullopt;
  return quantile(gaps, 0.5);
}

std::vector<Pair> time_pairs(const std::vector<RunOutcome>& outcomes) {
  std::vector<Pair> pairs;
  for (const RunOutcome& outcome : outcomes)
    if (outcome.ran && outcome.predicted_s && outcome.measured_s)
      pairs.push_back({*outcome.predicted_s, *outcome.measured_s});
  return pairs;
}

std::vector<Pair> other_time_pairs(const std::vector<RunOutcome>& outcomes) {
  std::vector<Pair> pairs;
  for (const RunOutcome& outcome : outcomes)
    if (outcome.ran && outcome.other_prediction_s && outcome.measured_s)
      pairs.push_back({*outcome.other_prediction_s, *outcome.measured_s});
  return pairs;
}

std::vector<Pair> memory_pairs(const std::vector<RunOutcome>& outcomes) {
  std::vector<Pair> pairs;
  for (const RunOutcome& outcome : outcomes)
    if (outcome.ran && outcome.predicted_bytes && outcome.measured_bytes)
      pairs.push_back({*outcome.predicted_bytes, *outcome.measured_bytes});
  return pairs;
}

}  // namespace sailor
