// Random plans as starts of the hill climb (hill_climb.h), and functions that they share with its moves
// (plan_moves.h).
#pragma once

#include <optional>
#include <vector>

#include "planner/plan/features.h"
#include "planner/simulator/simulate.h"
#include "tests/oracle/random.h"

namespace sailor::bench {

// A random plan: valid and placed, but it may not fit, and may need something that is not profiled. Nothing
// if this draw gives none.
std::optional<Plan> random_plan(const PlanningContext& context, const PlanFeatures& allowed,
                                oracle::Random& random);

// Divides the microbatches among the pipelines by weight, at least one round each; false if there are too few
// or they do not make whole rounds.
bool share_by_weight(Plan& plan, const std::vector<double>& weights);

// Draws one of the groups of pipelines that can each have a copy of what ZeRO shards, or none.
void draw_zero_group(Plan& plan, const ModelSpec& model, oracle::Random& random);

// Splits the layers into stages of about the same number of them.
void cut_evenly(PlanPipeline& pipeline, int layers);

// Groups of GPUs of a pipeline.
inline size_t groups_of(const Plan& plan, size_t pipeline) {
  return static_cast<size_t>(num_groups(plan, plan.pipelines[pipeline]));
}

}  // namespace sailor::bench
