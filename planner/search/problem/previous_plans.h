// A previous plan on the current cluster: after small changes most of it is still possible, and its value
// bounds the search from the start. Pure.
#pragma once

#include <vector>

#include "planner/plan/features.h"
#include "planner/plan/plan.h"
#include "planner/spec/job_spec.h"
#include "planner/spec/snapshot.h"

namespace sailor {

// The previous plan with as many of its pipelines as the nodes of `usable` still hold, unplaced, with
// microbatches divided as before or again as evenly as possible; then the same with more pipelines like its
// own if there is room, and with fewer pipelines if that takes no more rounds. Empty if not one pipeline is
// left, or the plan is for another model or batch.
std::vector<Plan> still_possible(const Plan& previous, const JobSpec& job, const Snapshot& usable);

// Takes from the plan what is not offered: recomputation, and sharding beyond the highest degree. False if
// what remains still has other features.
bool limit_features(Plan& plan, const PlanFeatures& offered);

// Can the previous plan run as it is? The GPUs that it names are there, the job may use as many, and it has
// no features but these.
bool still_complete(const Plan& previous, const JobSpec& job, const PlanFeatures& offered,
                    const Snapshot& usable);

}  // namespace sailor
