// A run as one page for a browser: its plan, how it trained against what was predicted, memory of its ranks,
// what happened to it. Self-contained: no script, no network. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "planner/history/run_history.h"
#include "planner/search/pareto.h"
#include "planner/simulator/prediction.h"
#include "planner/simulator/timeline.h"

namespace sailor {

// What the planner says of the run's plan and of others on the same nodes, where its inputs are still there.
struct RunPrediction {
  Prediction prediction;
  std::vector<Timeline> timelines;   // empty: too many events to draw
  std::optional<ParetoFront> front;  // throughput against cost
  std::string front_of;              // of which GPUs, in words
};

// `predicted` is made in `context`; both are there or neither is. `notes` are shown above everything else, a
// paragraph each.
std::string run_report(const RunHistory& history, const PlanningContext* context,
                       const RunPrediction* predicted, const std::vector<std::string>& notes);

}  // namespace sailor
