// How far training is, and what its steps come to: what ranks report, put in order. Of the generation in
// force; messages of others are to be kept away. Pure bookkeeping. Not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <variant>
#include <vector>

#include "planner/history/run_summary.h"
#include "trainer/control/control_message.h"

namespace sailor {

class TrainingProgress {
 public:
  explicit TrainingProgress(int num_ranks) : num_ranks_(num_ranks) {}

  // Another generation is in force. What the one before reported without its rank 0 is progress all the same.
  void begin_generation(int num_ranks);
  void reported(const StepReport& step);
  void noted(const Note& note);

  // Steps that rank 0 has reported since the last call, and what it had to say to people, in order. A job
  // that had to go back to an earlier state reports steps again.
  std::vector<std::variant<StepReport, Note>> take();
  // The traced step's tasks by rank, once every rank has reported them; then never again.
  std::optional<std::map<int, std::vector<TracedTask>>> take_trace();

  // How far rank 0 has said that training is: in a run that goes on from a checkpoint, more than the steps of
  // this run.
  int64_t last_step() const { return last_step_; }
  int64_t steps_done() const { return steps_done_; }
  // Of the generation in force: how long its steps took, in their order.
  const std::vector<double>& steps_s() const { return steps_s_; }
  // What that rank reported last in the generation in force; null = nothing.
  const StepReport* last_report(int rank) const;

  // Fills in the steps, losses and times of the run so far; iteration times are the generation's in force.
  void summarize(int64_t tokens_per_step, RunSummary& summary) const;

 private:
  void add(const StepReport& step);

  int num_ranks_;
  std::map<int, StepReport> last_reports_;  // by rank
  std::vector<std::variant<StepReport, Note>> progress_;
  std::map<int, std::vector<TracedTask>> trace_;
  std::vector<double> steps_s_;
  int64_t steps_done_ = 0, last_step_ = 0;
  double training_s_ = 0;
  std::optional<double> first_loss_, last_loss_, validation_loss_;
};

}  // namespace sailor
