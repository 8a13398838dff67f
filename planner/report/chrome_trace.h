// An iteration as a trace for chrome://tracing and Perfetto: a process per pipeline, a thread per stage, and
// a thread each for the stage's messages and its gradient sync. Pure.
#pragma once

#include <string>
#include <vector>

#include "planner/plan/plan.h"
#include "planner/simulator/timeline.h"

namespace sailor {

// JSON of the Trace Event Format. `timelines` has one entry per pipeline of the plan, with events; sync and
// update events are taken from there too. About 100 bytes per event. Names: F3 and B3 are the forward and
// backward of microbatch 3 (F3.1: of chunk 1), `send F3` its message.
std::string chrome_trace(const Plan& plan, const std::vector<Timeline>& timelines);

}  // namespace sailor
