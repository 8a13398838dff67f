// Places the stages of a plan on nodes: sets `node` and `gpus` of every stage, TP groups within one node.
//
// Deterministic. Best fit, largest stages first: a stage goes to the node with the fewest free GPUs on which
// it fits, so that few nodes are partly used. Stages of one pipeline prefer nodes that it already uses. Ties
// go to the node below the leaf switch with most communication partners of the stage: its neighbours in the
// pipeline and its replicas. If none is placed yet, they go to the smallest switch with room for the
// remaining stages, else to the largest switch. Stages that have a node keep it.
#pragma once

#include "planner/plan/plan.h"
#include "planner/spec/snapshot.h"

namespace sailor {

// Takes all stages from their nodes.
void unplace(Plan& plan);

// Throws std::runtime_error naming the stage that does not fit, or the pipeline with too few stages for
// plan.interleave (the search never returns such plans).
void place(Plan& plan, const Snapshot& snapshot);

}  // namespace sailor
