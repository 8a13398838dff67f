// A previous plan, on the cluster as it is now: when few nodes came or went, most of it still stands, and
// what it reaches bounds the search from the start. Pure.
#pragma once

#include <vector>

#include "planner/plan/plan.h"
#include "planner/spec/job_spec.h"
#include "planner/spec/snapshot.h"

namespace sailor {

// The previous plan with as many of its pipelines as the nodes of `usable` still hold, unplaced, microbatches
// shared among them as evenly as before or anew; then the same with more pipelines like its own, where there
// is room, and with some fewer, where fewer take no more rounds. Nothing when not one pipeline is left, or
// the plan is for another model or batch.
std::vector<Plan> still_possible(const Plan& previous, const JobSpec& job, const Snapshot& usable);

}  // namespace sailor
