// A run as a page for a browser: its plan, training compared with the prediction, memory of its ranks,
// events. Self-contained: no script, no network. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "planner/history/run_history.h"
#include "planner/search/pareto.h"
#include "planner/simulator/prediction.h"
#include "planner/simulator/timeline.h"

namespace sailor {

// The prediction of the run's plan, and other plans on the same nodes, if the planner's inputs exist.
struct PlanOutlook {
  Prediction prediction;
  std::vector<Timeline> timelines;   // empty: too many events to draw
  std::optional<ParetoFront> front;  // throughput against cost
  std::string front_of;              // GPUs of the front, in words
};

// `predicted` is made in `context`; both are given, or neither is. `notes` are paragraphs at the top.
std::string run_report(const RunHistory& history, const PlanningContext* context,
                       const PlanOutlook* predicted, const std::vector<std::string>& notes);

}  // namespace sailor
