// Plans of few stages whose replicas share their parameters (ZeRO-3), split the tokens of a sequence (context
// parallelism) or offload: how models are trained that do not fit otherwise. The best plans without are far
// from them, so that no climb from those leads there.
#pragma once

#include "planner/plan/features.h"
#include "planner/search/native/scorer.h"

namespace sailor::native {

// Of one pool with few stages or in few pipelines, and of several pools with one stage: on all of their GPUs.
void score_gathering_plans(Scorer& scorer, const PlanFeatures& offered);

}  // namespace sailor::native
