// The plan of a job on the nodes that it got. Slurm may give a job other nodes than the planned ones: then
// the plan is placed on equal nodes, or, if the job does not have enough of them, made again, with the
// submitted plan as the first candidate.
#pragma once

#include <string>
#include <vector>

#include "planner/inputs/planning_record.h"
#include "planner/plan/node_groups.h"
#include "planner/plan/plan.h"
#include "planner/spec/job_spec.h"
#include "trainer/elastic/replanner.h"

namespace sailor {

struct StartPlan {
  Plan plan;           // on nodes of the job
  std::string text{};  // "planned for a1, runs on a2"; empty: as planned
  NodeMoves moves{};
  Snapshot nodes{};  // of a plan that was made again

  // Replaces the nodes in the planner's inputs: cluster.yaml has those of the plan in force.
  void place(PlanningFiles& planning) const;
};

// `groups` came with the plan; without them it is returned as it is. `nodes` are those of the job. Throws
// std::runtime_error when there is no plan for them, and like Replanner.
StartPlan plan_for_nodes(const JobSpec& job, const Plan& plan, const std::vector<NodeGroup>& groups,
                         const std::vector<std::string>& nodes, const Replanner::Options& options);

}  // namespace sailor
