// Is a plan right for a job, and does it fit a cluster? Every violation is one line that names pipeline and
// stage; an empty list means valid. Pure.
#pragma once

#include <string>
#include <vector>

#include "planner/plan/features.h"
#include "planner/plan/plan.h"
#include "planner/spec/job_spec.h"
#include "planner/spec/snapshot.h"

namespace sailor {

// Layers covered once and in order in every pipeline, TP degrees that divide the model (heads, feed_forward),
// microbatches that make up the global batch exactly, interleaved chunks on the GPUs
// of their group with microbatches in whole rounds; and nothing of recompute and ZeRO-1 that is not
// `allowed`: by default what the trainer runs.
std::vector<std::string> check_plan(const Plan& plan, const JobSpec& job,
                                    const PlanFeatures& allowed = trainable_features());
// For placed stages, whatever the cluster: a GPU of a node is used once.
std::vector<std::string> check_placement(const Plan& plan);
// GPUs of a type in a zone not over-used; for placed stages: the node exists, has the type and zone, its GPUs
// are free and used once.
std::vector<std::string> check_plan(const Plan& plan, const Snapshot& snapshot);

}  // namespace sailor
