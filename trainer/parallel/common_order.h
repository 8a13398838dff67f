// The order of computations that all replicas of a stage have in common, so that they can exchange gradients
// and weights in every microbatch (ZeRO-2, ZeRO-3), though pipelines may have different numbers of
// microbatches. Pure.
//
// With hybrid ZeRO each group of pipelines has an order of its own. The common schedule is that of a pipeline
// with as many microbatches as any of them has. A pipeline with fewer has its own in some of them, which are
// spread evenly: so a slow pipeline with few microbatches and a fast one with many proceed together.
// Interleaved chunks take rounds of microbatches: there they are the first ones.
#pragma once

#include <vector>

#include "planner/plan/plan.h"
#include "planner/plan/rank_layout.h"
#include "trainer/parallel/schedule.h"

namespace sailor {

// The common schedule, as the group of GPUs of a slot has it in a pipeline that is cut like its own.
std::vector<ScheduleStep> common_steps(const Plan& plan, const RankSlot& slot);
// The microbatch that a pipeline has in the place of a common one; -1 if it has none.
int own_microbatch(const Plan& plan, int pipeline, int microbatch);
// The schedule of a slot's group of GPUs: that of its pipeline; or with ZeRO-3, where weights are gathered in
// the common order, its steps of the common one.
std::vector<ScheduleStep> own_steps(const Plan& plan, const RankSlot& slot);

// The stage of a chunk of a group of GPUs.
const PlanStage& stage_of_chunk(const Plan& plan, const RankSlot& slot, int chunk);

}  // namespace sailor
