// Checks a plan for a job and for a cluster. Every violation is one line with pipeline and stage; an empty
// list means valid. Pure.
#pragma once

#include <string>
#include <vector>

#include "planner/plan/features.h"
#include "planner/plan/plan.h"
#include "planner/spec/job_spec.h"
#include "planner/spec/snapshot.h"

namespace sailor {

// Every pipeline must cover the layers once and in order. TP degrees must divide the model (heads,
// feed_forward). Microbatches must add up to the global batch. Interleaved chunks must be on the GPUs of
// their group, with a number of microbatches that is a multiple of the groups. Recomputation and ZeRO must be
// `allowed`: by default what the trainer supports.
std::vector<std::string> check_plan(const Plan& plan, const JobSpec& job,
                                    const PlanFeatures& allowed = trainable_features());
// Where gradients are summed or weights gathered in every microbatch, do all pipelines go through the layers
// of a microbatch in one order? For sums interleaved chunks that are cut differently do not; for gathers no
// stages do that are cut differently.
bool can_sum_in_one_order(const Plan& plan);
// With hybrid ZeRO, do the groups of pipelines divide the plan's, and have as many ranks for every layer, two
// at least?
bool zero_groups_match(const Plan& plan, const ModelSpec& model);
// For placed stages on any cluster: a GPU of a node is used once.
std::vector<std::string> check_placement(const Plan& plan);
// No more GPUs of a type in a zone than are free; for placed stages: the node exists, has the type and zone,
// and its GPUs are free and used once. Within the limits of the cluster.
std::vector<std::string> check_plan(const Plan& plan, const Snapshot& snapshot);

}  // namespace sailor
