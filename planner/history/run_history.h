// The history of a run, read from its directory: the plan in force, steps, events, changes of plan, the
// summary. etc/doc/formats.md describes the files and their keys. Value types; reading keeps no state.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "planner/plan/plan.h"

namespace sailor {

struct StepRecord {
  int64_t step = 0;  // from 1
  std::optional<double> loss;
  std::optional<double> validation_loss;
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

struct RankRecord {
  int rank = 0;
  std::string node;
  std::string gpu_type;
  int pipeline = 0;
  int stage = 0;
  int64_t peak_rss_bytes = 0;
};

// summary.json of a finished run.
struct RunEnd {
  std::string status;  // finished | failed | cancelled
  std::string error;
  bool emulated = false;
  int64_t steps = 0;
  std::optional<double> first_loss, last_loss, validation_loss;
  std::optional<double> measured_iteration_s, predicted_iteration_s;
  std::optional<double> tokens_per_s;
  std::optional<double> mfu;
  std::optional<double> training_s;
  std::vector<RankRecord> ranks;
};

struct RunHistory {
  std::string directory;
  Plan plan;  // in force, or the last one
  std::vector<StepRecord> steps;
  std::vector<RunEvent> events;       // oldest first
  std::vector<PlanChange> changes;    // all but the first generation
  std::vector<PlanPromise> promises;  // one per generation that trained; elastic jobs only
  std::optional<RunEnd> end;
};

// Throws InputError when the plan of the directory cannot be read. Files that are missing or partly written
// are skipped.
RunHistory read_run_history(const std::string& directory);

}  // namespace sailor
