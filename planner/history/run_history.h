// What a run has done, as its directory tells: the plan in force, steps, events, changes of plan, the
// summary. The files and their keys are in etc/doc/formats.md. Value types; reading keeps nothing.
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
  int generation = 0;  // 0 = it is not about one
};

// From one generation to the next; seconds in the order in which they pass.
struct PlanChange {
  double time_s = 0;  // when the new one ran
  int generation = 0;
  std::string why;
  int ranks = 0;
  int64_t steps_done = 0;
  int64_t steps_lost = 0;
  std::string state_from;
  std::optional<double> cleanup_s, plan_s, broadcast_s, groups_s, state_s;
  std::optional<double> resume_s;         // all of it
  std::optional<double> to_first_step_s;  // until a step is done
};

// What the plan of a generation promised, from the step after `steps_done` on.
struct PlanPromise {
  int64_t steps_done = 0;
  std::optional<double> iteration_s;  // nothing: nobody could predict it
};

struct RankRecord {
  int rank = 0;
  std::string node;
  std::string gpu_type;
  int pipeline = 0;
  int stage = 0;
  int64_t peak_rss_bytes = 0;
};

// summary.json of a run that has ended.
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
  std::vector<PlanChange> changes;    // but for the first generation
  std::vector<PlanPromise> promises;  // one per generation that trained; of elastic jobs only
  std::optional<RunEnd> end;
};

// Throws InputError when the directory's plan cannot be read. What is not there yet, or torn because it is
// being written, is left out.
RunHistory read_run_history(const std::string& directory);

}  // namespace sailor
