// The number of replicas of each stage by GPU type and TP degree: the first step of an assignment on many
// GPUs (greedy_assignment.cpp). Zones are chosen later; here only the total of a type in a region counts.
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

// All replicas of a stage start in its slowest group; then replicas move to other groups where GPUs are
// short. Nothing if that does not suffice.
std::optional<TypeAssignment> assign_types(const AssignmentProblem& problem,
                                           const PipelineTemplate& pipeline);

}  // namespace sailor
