// Features of plans beyond the search space `paper`, by name, and which of them the trainer supports.
//
//     unlike-cuts     pipelines cut the layers differently
//     unlike-shares   pipelines take numbers of microbatches that differ by more than one
//     unlike-microbatches  pipelines have microbatches of different sizes
//     recompute       a stage computes activations again in the backward instead of keeping them: light, mlp
//                     or full, or some of its blocks more than the others (spec/recompute.h)
//     zero1           the replicas of a stage share its optimizer states
//     zero2           and its gradients, which are summed after every microbatch; with zero1
//     zero3           and its parameters, which are gathered in every microbatch; with both
//     hybrid-zero     groups of pipelines each share a copy of what ZeRO shards, instead of all one; with
//                     zero1
//     interleave      a group of GPUs holds several chunks of the model (interleaved 1F1B)
//     split-backward  a stage computes the gradients of weights after those that others wait for
//                     (spec/split_backward.h)
//     sequence-parallel  stages with tensor parallelism split the tokens outside of it (sequence parallelism)
//     context-parallel   GPUs with the same weights split the tokens of a microbatch; with sequence-parallel
//     offload         a stage keeps its optimizer states in the memory of its node (spec/offload.h), or the
//                     inputs of blocks that it computes again; the planner offers it with recompute
// and what the planner never offers, but plans that others have run may have
//     selective       a stage computes the inside of attention again, and keeps the rest
// Pure and thread-safe.
#pragma once

#include <set>
#include <span>
#include <string>
#include <vector>

#include "planner/spec/zero.h"

namespace sailor {

enum class PlanFeature {
  unlike_cuts,
  unlike_shares,
  unlike_microbatches,
  recompute,
  zero1,
  zero2,
  zero3,
  hybrid_zero,
  interleave,
  split_backward,
  sequence_parallel,
  context_parallel,
  offload,
  selective_recompute
};
using PlanFeatures = std::set<PlanFeature>;

const char* to_string(PlanFeature feature);
// Of those that the planner may use.
std::vector<std::string> plan_feature_names();
// Comma-separated names of features that the planner may use; also `none` and `all`. Throws InputError for an
// unknown name.
PlanFeatures parse_plan_features(const std::string& text);

// Features that the planner may use.
PlanFeatures all_plan_features();
// Features that the simulator predicts: these and more.
PlanFeatures predictable_features();
// Features that the trainer supports, these and more: the planner's default, and the limit for plans to be
// trained.
PlanFeatures trainable_features();

// The ZeRO degrees of a plan with these features, lowest first: each needs the features of those before it.
// One replica has nothing to shard.
std::span<const Zero> zero_degrees(const PlanFeatures& features, int replicas = 2);

}  // namespace sailor
