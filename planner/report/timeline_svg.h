// An iteration as a self-contained SVG: a row per stage, time to the right, forwards and backwards in two
// colours; gaps are waiting time. Readable on light and dark backgrounds; needs no script, no font and no
// network. Pure.
#pragma once

#include <string>
#include <vector>

#include "planner/plan/plan.h"
#include "planner/simulator/prediction.h"
#include "planner/simulator/timeline.h"

namespace sailor {

// `timelines` has one entry per pipeline of the plan, with events; sync and update events are taken from
// there too. Equal pipelines are drawn once. Where bars would be thinner than a pixel, a row shows by height
// the fractions of forward and backward at each moment, so that the size of the picture does not grow with
// the number of microbatches.
std::string timeline_svg(const Plan& plan, const Prediction& prediction,
                         const std::vector<Timeline>& timelines);

}  // namespace sailor
