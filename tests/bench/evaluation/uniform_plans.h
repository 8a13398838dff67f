// Plans that one would try without a planner: all GPUs, stages of equal length, one TP degree, one microbatch
// size, ranks in the order of the nodes. They show the cost of a bad plan.
#pragma once

#include <vector>

#include "planner/plan/plan.h"
#include "planner/simulator/prediction.h"
#include "tests/bench/reference_data.h"

namespace sailor::bench {

// All GPUs of the nodes as TP groups of this degree, in the order of the nodes; empty if a node has GPUs left
// over.
std::vector<PlanStage> tp_groups(const Snapshot& snapshot, int tp);
enum class Neighbours { replicas, stages };  // what neighbouring groups are
// The groups as pipelines of `stages` equal stages. Requires a number of groups that `stages` divides.
Plan uniform_plan(const JobSpec& job, const std::vector<PlanStage>& groups, int stages, int microbatch,
                  Neighbours neighbours);

struct UniformPlan {
  Plan plan;
  Prediction prediction;  // under the published cost model; may not fit
};
// Every uniform plan over all GPUs of the cluster whose layers are profiled: every TP degree within a node,
// every number of stages that divides the GPUs, every microbatch, neighbouring GPUs as replicas of a stage
// and as stages of a pipeline. Fitting plans first, fastest first. Pure.
std::vector<UniformPlan> uniform_plans(const Inputs& inputs);

}  // namespace sailor::bench
