// The history of a run, read from its directory: the plan in force, steps, events, changes of plan, the
// summary. etc/doc/formats.md describes the files and their keys. Value types; reading keeps no state.
//
// A run is one execution of a job by `sailor run`, identified by its directory, sailor-JOBID. RunDirectory
// (trainer/record) writes that directory. RunHistory is its content, RunStatus the current state of the run,
// RunSummary its result. A MeasuredRun (planner/plan) is the reference for predictions: a plan and what was
// measured under it, with our trainer or another one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "planner/history/run_summary.h"
#include "planner/history/validation_losses.h"
#include "planner/plan/plan.h"

namespace sailor {

// A line of metrics.jsonl.
struct StepMetrics {
  int64_t step = 0;  // from 1
  std::optional<double> loss;
  ValidationLosses validation;
  std::optional<double> step_s;
  std::optional<double> tokens_per_s;
};

struct RunEvent {
  double time_s = 0;   // wall clock, since 1970
  std::string name;    // `lost`, ...
  std::string text;    // one line for people
  int generation = 0;  // 0 = not about a generation
};

// The change from one generation to the next; times in seconds, in order.
struct PlanChange {
  double time_s = 0;  // when the new generation ran
  int generation = 0;
  std::string why;
  int ranks = 0;
  int64_t steps_done = 0;
  int64_t steps_lost = 0;
  std::string state_from;
  std::optional<double> cleanup_s, plan_s, broadcast_s, groups_s, state_s;
  std::optional<double> resume_s;         // the whole change
  std::optional<double> to_first_step_s;  // until the first step is done
};

// Prediction for the plan of a generation, from the step after `steps_done` on.
struct PlanPromise {
  int64_t steps_done = 0;
  std::optional<double> iteration_s;  // nothing = no prediction was possible
};

struct RunHistory {
  std::string directory;
  Plan plan;  // in force, or the last one
  std::vector<StepMetrics> steps;
  std::vector<RunEvent> events;       // oldest first
  std::vector<PlanChange> changes;    // all but the first generation
  std::vector<PlanPromise> promises;  // one per generation that trained; elastic jobs only
  std::optional<RunSummary> summary;  // of a finished run
};

// Throws InputError when the plan of the directory cannot be read. Files that are missing or partly written
// are skipped.
RunHistory read_run_history(const std::string& directory);
// Only the steps.
std::vector<StepMetrics> read_steps(const std::string& directory);

}  // namespace sailor
