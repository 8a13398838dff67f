// What a plan may have beyond the search space `paper`, by name, and which of it the trainer runs today.
//
//     unlike-cuts     pipelines cut the layers differently
//     unlike-shares   pipelines take numbers of microbatches that differ by more than one
//     recompute       a stage computes activations again in the backward instead of keeping them
//     zero1           the replicas of a stage share its optimizer states
//     interleave      a group of GPUs holds several chunks of the model (interleaved 1F1B)
// and what plans that others have run may have besides, and the planner never offers:
//     selective       a stage computes the inside of attention again, and keeps the rest
// Pure and thread-safe.
#pragma once

#include <set>
#include <span>
#include <string>

#include "planner/spec/zero.h"

namespace sailor {

enum class PlanFeature { unlike_cuts, unlike_shares, recompute, zero1, interleave, selective_recompute };
using PlanFeatures = std::set<PlanFeature>;

const char* to_string(PlanFeature feature);
// Names of what the planner may offer, separated by commas; also `none` and `all`. Throws InputError on
// another name.
PlanFeatures parse_plan_features(const std::string& text);

// What the planner may offer.
PlanFeatures all_plan_features();
// What the simulator predicts: all of that and more.
PlanFeatures predictable_features();
// The one switch: what the planner offers unless told otherwise, and what a plan to be trained may have.
PlanFeatures trainable_features();

// What a plan with these features may shard, least first. One replica has nobody to share with.
std::span<const Zero> zero_degrees(const PlanFeatures& features, int replicas = 2);

}  // namespace sailor
