// How a run is going: what `sailor status` says of its history, while it runs or after it. Pure but for
// reading files.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "planner/history/run_history.h"

namespace sailor {

struct RunStatus {
  std::string directory;
  std::string state;  // starting | training | changing | waiting | finished | continued | failed | cancelled
  std::string error;  // of a run that has ended badly
  int generation = 1;
  std::string plan;  // summary of the one in force
  int ranks = 0;
  int64_t step = 0;              // the last one that was done; 0 = none yet
  std::optional<int64_t> steps;  // to be done in all
  std::optional<double> loss;
  std::optional<double> iteration_s;            // median of the last steps, of this plan
  std::optional<double> predicted_iteration_s;  // the plan's promise
  std::optional<double> tokens_per_s;
  std::vector<RunEvent> events;  // all of them, oldest first
};

// Throws InputError when the directory's plan cannot be read. What is not there yet, or torn because it is
// being written, is left out.
RunStatus read_run_status(const std::string& directory);

// For people; with the last `events` events. Times are local.
std::string status_text(const RunStatus& status, size_t events);
// `"sailor_status": 1`
std::string status_json(const RunStatus& status, size_t events);

}  // namespace sailor
