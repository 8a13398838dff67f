// The search among uniform plans (FrameworkStyle::uniform_plans), for training programs whose frameworks run
// no others: equal pipelines in one pool, equal pipelines over the same stages of several pools, and
// pipelines side by side in several pools, where the slowest sets the pace.
#pragma once

#include "planner/plan/features.h"
#include "planner/search/native/scorer.h"

namespace sailor::native {

// Scores them in the order of estimates, until all are scored or the effort is spent. `groups`: also with
// groups of pipelines that each have a copy of what is sharded. Returns how many shapes there were.
int64_t score_uniform_plans(Scorer& scorer, const PlanFeatures& offered, bool groups);

}  // namespace sailor::native
