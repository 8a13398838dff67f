// The record of a run of another trainer's program: metrics of its steps, if it tells them
// (trainer/record/program_steps.h), and the summary. Not thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "planner/history/run_summary.h"
#include "planner/plan/plan.h"
#include "planner/spec/framework_style.h"
#include "planner/spec/job_spec.h"
#include "trainer/elastic/controller.h"
#include "trainer/elastic/supervisor.h"
#include "trainer/record/metrics_writer.h"
#include "trainer/record/program_steps.h"
#include "trainer/record/run_directory.h"

namespace sailor {

class ProgramRecord {
 public:
  // References outlive the object. `plan` is that of generation 1.
  ProgramRecord(const JobSpec& job, const Plan& plan, const FrameworkStyle& framework,
                const RunDirectory& directory, const ControllerOptions& options);

  // Where ranks write: SAILOR_STEPS.
  const std::string& steps_directory() const { return steps_.directory(); }
  void begin_generation(int number, const Plan& plan);
  // Call often: reads and writes steps at most once a second. Returns the first step of this generation,
  // once.
  std::optional<StepReport> look();
  // Seconds without a step of this generation, if that is so long that its ranks hang: `timeout_s`, and twice
  // as long as any step took until now. Nothing while the program has not told of any step, and after the
  // last step of the training.
  std::optional<double> hangs_s(double timeout_s) const;
  // The ranks whose last step of this generation is not the last one of all, a few words each.
  std::vector<std::string> stragglers() const;
  // Median of the steps of this generation; nothing before the first few.
  std::optional<double> iteration_s() const;
  // 0 if none is known.
  int64_t last_step() const { return ranks_.progress().last_step(); }
  // Of this start; 0 if none is known.
  int64_t first_step() const { return first_step_; }
  // Writes summary.json and run.json, and returns a few lines about the steps. `summary` has status, error,
  // job and what else is known without them.
  std::string conclude(RunSummary summary);

 private:
  void begin_ranks(int number);
  void read();

  const JobSpec& job_;
  Plan plan_;
  const FrameworkStyle& framework_;
  const RunDirectory& directory_;
  const ControllerOptions& options_;
  const StepFacts facts_;
  MetricsWriter metrics_;
  ProgramSteps steps_;
  Supervisor ranks_;
  int generation_ = 1;
  double next_look_s_ = 0;
  int64_t first_step_ = 0;
  std::optional<StepReport> first_;  // of the generation
  bool first_taken_ = false;
  // When the last step of this generation was read, or it began; the longest time between two steps.
  double last_read_s_ = 0, longest_step_s_ = 0;
  double last_look_s_ = 0;
};

}  // namespace sailor
