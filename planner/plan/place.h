// Puts the stages of a plan on nodes: fills `node` and `gpus` of every stage, TP groups within one node.
//
// Deterministic. Stages that need most GPUs go first, into the node with the fewest free GPUs that still
// holds them, so that few nodes are broken into; stages of one pipeline prefer nodes already used by it. Of
// nodes that are equal so far it takes the one below the leaf switch with most of those that the stage talks
// to: its neighbours in the pipeline and its replicas; with none placed yet, below the smallest switch that
// holds what is left to place, else the largest. Stages that have a node keep it.
#pragma once

#include "planner/plan/plan.h"
#include "planner/spec/snapshot.h"

namespace sailor {

// Throws std::runtime_error naming the stage that found no node, or the pipeline with too few stages for
// plan.interleave (the search never offers such plans).
void place(Plan& plan, const Snapshot& snapshot);

}  // namespace sailor
