// The files that `sailor simulate` draws: a trace, a page, a picture.
#pragma once

#include <string>
#include <vector>

#include "planner/cli/commands.h"
#include "planner/plan/plan.h"
#include "planner/simulator/prediction.h"
#include "planner/simulator/simulate.h"
#include "planner/simulator/timeline.h"

namespace sailor::cli {

// The largest trace that a browser opens: about 50 MB.
inline constexpr double kMostTraceEvents = 500'000;
// Pages and pictures do not grow with the events, but all events are in memory while they are drawn.
inline constexpr double kMostPictureEvents = 5'000'000;

// Has the plan few enough events for a picture?
bool can_draw(const Plan& plan);
bool wants_pictures(const SimulateCommand& command);
// Throws InputError when the cost model has no timeline, or when the plan has too many events to draw. Call
// it before simulating the plan.
void check_pictures(const SimulateCommand& command, const Plan& plan, CostModel model);
void write_pictures(const SimulateCommand& command, const Plan& plan, const Prediction& prediction,
                    const std::vector<Timeline>& timelines, const std::vector<std::string>& notes);

}  // namespace sailor::cli
