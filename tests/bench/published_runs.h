// Published runs whose source says everything that a plan says, predicted as a user's plans are without any
// measurement: with the installed catalog and our trainer on GPUs. Runs of frameworks that work otherwise are
// listed with what is not modelled.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "planner/plan/plan.h"
#include "planner/simulator/assumptions.h"
#include "planner/spec/error.h"
#include "planner/spec/job_spec.h"

namespace sailor::bench {

struct PublishedRun {
  std::string name;
  Where where;
  JobSpec job;
  Plan plan;
  std::string gpu_type;
  std::string framework;  // whose description is the run's own
  std::string options;    // KEY=VALUE that the run changes in descriptions; empty = none
  double iteration_s = 0;
  std::optional<double> stated_mfu_pct;
  bool is_like_ours = false;  // parallelized as our trainer does it
  std::string not_modelled, source;
};

struct MfuRow {
  double published_pct = 0;
  double predicted_pct = 0;  // of the framework that ran
  double ours_pct = 0;       // of our trainer with the same plan
  bool fits = true;          // our trainer's memory
};

// Throws InputError, also when the MFU that a source states is not that of its time and model.
std::vector<PublishedRun> load_published_runs(const std::string& path);
MfuRow predict_mfu(const PublishedRun& run, const Assumptions& assumptions);

// CSV on stdout, a row per run; returns whether all runs like ours are within kMostErrorPct.
inline constexpr double kMostErrorPct = 15;
bool print_mfu_table(const std::vector<PublishedRun>& runs, const Assumptions& assumptions);

}  // namespace sailor::bench
