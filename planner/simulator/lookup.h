// Lookups in profiles that throw instead of guessing: a cell, size or link that was not measured is an
// InputError that names it, never zero. Pure; returned references are valid as long as the context.
// context.
#pragma once

#include <vector>

#include "planner/plan/plan.h"
#include "planner/simulator/simulate.h"

namespace sailor {

const LayerProfile& profile_of(const PlanningContext& context, const std::string& gpu_type);
const LayerProfile::Cell& cell_of(const PlanningContext& context, const std::string& gpu_type, int microbatch,
                                  ReplicaShape shape);
const std::vector<LayerSizes>& sizes_of(const PlanningContext& context, ReplicaShape shape);

// The ends of a link for the network profile.
LinkEnd link_end(const PlanStage& stage, int gpus);
// Like NetworkProfile::find, but an unplaced pair that has no inter-node curve falls back to the intra-node
// one (a cluster of one node), and nullptr only when neither is known.
const LinkCurve* find_link(const NetworkProfile& network, const LinkEnd& from, const LinkEnd& to,
                           bool same_node);
const LinkCurve& link_of(const PlanningContext& context, const LinkEnd& from, const LinkEnd& to,
                         bool same_node);
// Are both stages placed, and on one node?
bool on_one_node(const PlanStage& a, const PlanStage& b);

}  // namespace sailor
