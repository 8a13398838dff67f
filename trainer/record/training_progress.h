// The progress of training and statistics of its steps, from the reports of ranks. The caller passes only
// messages of the current generation. Pure bookkeeping. Not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "planner/history/run_history.h"
#include "planner/history/run_summary.h"
#include "trainer/control/control_message.h"

namespace sailor {

class TrainingProgress {
 public:
  explicit TrainingProgress(int num_ranks) : num_ranks_(num_ranks) {}

  // A new generation begins. Steps that the previous one reported without its rank 0 count as progress.
  void begin_generation(int num_ranks);
  void reported(const StepReport& step);
  void noted(const Note& note);

  // Steps and notes that rank 0 has reported since the last call, in order. A job that had to return to an
  // earlier state reports steps again.
  std::vector<std::variant<StepReport, Note>> take();
  // The tasks of the traced step by rank: returned once, when every rank has reported them.
  std::optional<std::map<int, std::vector<TracedTask>>> take_trace();

  // Steps of earlier starts in the same run directory. Those before the first step of this start are part of
  // the run.
  void continue_from(std::vector<StepMetrics> earlier) { earlier_ = std::move(earlier); }

  // The last step that rank 0 has reported. In a run that continues from a checkpoint, more than the steps of
  // this start.
  int64_t last_step() const { return last_step_; }
  int64_t steps_done() const { return steps_done_; }
  // Duration of the last save; nothing before the first one.
  std::optional<double> save_s() const { return save_s_; }
  // Durations of the steps of the current generation, in order.
  const std::vector<double>& steps_s() const { return steps_s_; }
  // The last report of that rank in the current generation; null = none.
  const StepReport* last_report(int rank) const;

  // Fills in the steps, losses and times of the run so far, earlier starts included; iteration times are
  // those of the current generation.
  void summarize(int64_t tokens_per_step, RunSummary& summary) const;

 private:
  void add(const StepReport& step);
  void add_earlier(RunSummary& summary) const;

  int num_ranks_;
  std::map<int, StepReport> last_reports_;  // by rank
  std::vector<std::variant<StepReport, Note>> progress_;
  std::map<int, std::vector<TracedTask>> trace_;
  std::vector<double> steps_s_;
  int64_t steps_done_ = 0, last_step_ = 0;
  std::vector<StepMetrics> earlier_;
  std::optional<int64_t> first_step_;  // of this start
  std::optional<double> save_s_;
  double training_s_ = 0;
  std::optional<double> first_loss_, last_loss_;
  ValidationLosses validation_;  // the last one
};

}  // namespace sailor
