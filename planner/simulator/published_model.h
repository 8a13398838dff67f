// The published cost model: exactly the formulas of the reference COST_MODEL.md, to compare plans of
// different planners by one judge. Its constants are part of that definition; the native model has none.
#pragma once

#include <cstdint>
#include <span>

#include "planner/profile/layer_profile.h"
#include "planner/profile/network_profile.h"
#include "planner/simulator/prediction.h"
#include "planner/simulator/simulate.h"

namespace sailor::published {

constexpr double kFloatBytes = 4;

// Peak memory of a rank that has `layers` (sizes at its TP degree) with `in_flight` = P - i microbatches.
MemoryBreakdown memory(std::span<const LayerSizes> layers, ReplicaShape shape, int microbatch, int in_flight);
// Gradient sync of a stage over one pair of neighbouring replicas.
double all_reduce_s(const LinkCurve& pair, double bytes, int replicas);
// Bytes that the replicas of a stage reduce: its parameters at TP degree 1, sharded over at most 4.
double sync_bytes(double stage_bytes, int parts);
// Communication of stage i of P per microbatch, from the times of its activation and gradient messages.
double stage_comm_s(int stage, int stages, double activation_s, double gradient_s);

// Throws InputError when the pipelines of the plan have different layer splits, which the formulas do not
// cover.
Prediction simulate(const PlanningContext& context, const Plan& plan);

}  // namespace sailor::published
