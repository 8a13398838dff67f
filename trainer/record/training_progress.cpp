#include "trainer/record/training_progress.h"

#include <utility>

#include "trainer/record/step_metrics.h"

namespace sailor {

void TrainingProgress::begin_generation(int num_ranks) {
  for (const auto& [rank, report] : last_reports_) {
    if (report.step > last_step_) add(report);
  }
  num_ranks_ = num_ranks;
  last_reports_.clear();
  trace_.clear();
  steps_s_.clear();
}

void TrainingProgress::reported(const StepReport& step) {
  last_reports_[step.rank] = step;
  last_reports_[step.rank].tasks.clear();
  if (!step.tasks.empty()) trace_[step.rank] = step.tasks;
  if (step.rank == 0) add(step);
}

void TrainingProgress::add(const StepReport& step) {
  progress_.emplace_back(step);
  steps_s_.push_back(step.step_s);
  training_s_ += step.step_s;
  ++steps_done_;
  if (!first_step_) first_step_ = step.step;
  last_step_ = step.step;
  if (step.loss && !first_loss_) first_loss_ = step.loss;
  if (step.loss) last_loss_ = step.loss;
  if (!step.validation.empty()) validation_ = step.validation;
}

void TrainingProgress::noted(const Note& note) {
  if (note.rank != 0) return;
  progress_.emplace_back(note);
  if (note.save_s) save_s_ = note.save_s;
  last_step_ = note.step;
}

std::vector<std::variant<StepReport, Note>> TrainingProgress::take() {
  return std::exchange(progress_, {});
}

std::optional<std::map<int, std::vector<TracedTask>>> TrainingProgress::take_trace() {
  if (static_cast<int>(trace_.size()) < num_ranks_) return std::nullopt;
  return std::exchange(trace_, {});
}

const StepReport* TrainingProgress::last_report(int rank) const {
  const auto it = last_reports_.find(rank);
  return it == last_reports_.end() ? nullptr : &it->second;
}

void TrainingProgress::summarize(int64_t tokens_per_step, RunSummary& summary) const {
  summary.steps = steps_done_;
  summary.first_loss = first_loss_;
  summary.last_loss = last_loss_;
  summary.validation = validation_;
  summary.measured_iteration_s = steady_iteration_s(steps_s_);
  summary.mean_iteration_s = mean_iteration_s(steps_s_);
  if (summary.measured_iteration_s && *summary.measured_iteration_s > 0)
    summary.tokens_per_s = static_cast<double>(tokens_per_step) / *summary.measured_iteration_s;
  summary.training_s = training_s_;
  add_earlier(summary);
}

void TrainingProgress::add_earlier(RunSummary& summary) const {
  std::optional<double> first_loss, last_loss;
  ValidationLosses validation;
  for (const StepMetrics& step : earlier_) {
    if (first_step_ ? step.step >= *first_step_ : step.step > last_step_) continue;
    ++summary.steps;
    summary.training_s += step.step_s.value_or(0);
    if (!first_loss) first_loss = step.loss;
    if (step.loss) last_loss = step.loss;
    if (!step.validation.empty()) validation = step.validation;
  }
  if (first_loss) summary.first_loss = first_loss;
  if (!summary.last_loss) summary.last_loss = last_loss;
  if (summary.validation.empty()) summary.validation = validation;
}

}  // namespace sailor
