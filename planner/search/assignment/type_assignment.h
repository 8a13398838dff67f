// How many replicas of each stage run on which GPU type and TP degree: the first step of assigning a pipeline
// template on many GPUs (greedy_assignment.cpp). Zones come later; what counts here is all that a region has
// of a type. Pure.
#pragma once

#include <vector>

#include "planner/search/assignment/assignment.h"

namespace sailor {

// Replicas of a stage by group: options of one type and TP degree in the stage's region, by zone.
struct GroupShare {
  std::vector<int> options;
  int replicas = 0;
};
using TypeAssignment = std::vector<std::vector<GroupShare>>;  // by stage; the slowest group first

// At most `most` ways, unlike each other, the most promising first; none where no way was found.
//
// First the slowest group serves alone, and replicas move where GPUs are short. Then every type has a price
// per GPU, and stages take what is cheapest for them, those first that lose most otherwise: the form that
// vertices of the transportation problem have, so at most a few stages are mixed. Prices at which stages are
// indifferent are tried in turn.
std::vector<TypeAssignment> type_assignments(const AssignmentProblem& problem,
                                             const PipelineTemplate& pipeline, size_t most);

}  // namespace sailor
