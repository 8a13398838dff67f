// How many replicas of each stage run on which GPU type and TP degree: the first step of an assignment on
// many GPUs (greedy_assignment.cpp). Zones come later; what counts here is all that a region has of a type.
// Pure.
#pragma once

#include <optional>
#include <vector>

#include "planner/search/assignment/assignment.h"

namespace sailor {

// Replicas of a stage by group: options of one type and TP degree in the stage's region, by zone.
struct GroupShare {
  std::vector<int> options;
  int replicas = 0;
};
using TypeAssignment = std::vector<std::vector<GroupShare>>;  // by stage; the slowest group first

// The slowest group of every stage serves alone; then replicas move to other groups where GPUs are short.
// Nothing when that does not suffice.
std::optional<TypeAssignment> assign_types(const AssignmentProblem& problem,
                                           const PipelineTemplate& pipeline);

}  // namespace sailor
