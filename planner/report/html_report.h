// A prediction as a page for a browser: cost and time, memory per stage by source, and the timeline.
// Self-contained: no script, no network. Pure.
#pragma once

#include <string>
#include <vector>

#include "planner/plan/plan.h"
#include "planner/simulator/prediction.h"
#include "planner/simulator/timeline.h"

namespace sailor {

// `timelines` as for timeline_svg(); empty: a page without a picture (not every cost model has timelines).
// `notes` are paragraphs above the tables: what is estimated, what does not fit.
std::string html_report(const Plan& plan, const Prediction& prediction,
                        const std::vector<Timeline>& timelines, const std::vector<std::string>& notes = {});

}  // namespace sailor
