// Sends a plan with its job: packed (planner/plan/packed_plan.h) and split into environment variables,
// because one variable must stay below 128 KiB. Under Slurm the plugin sets them.
//
//     SAILOR_PLAN_0, SAILOR_PLAN_1, ...   the plan
//     SAILOR_PLANNING_0, ...              the planner's inputs (planner/inputs/planning_record.h), packed
//     SAILOR_EQUAL_NODES_0, ...           on which nodes the plan may run as well
//     (planner/plan/node_groups.h),
//                                         packed; missing if it may not
//     SAILOR_QUEUED_NODES                 for which it queues while it runs
//     (planner/plan/queued_nodes.h)
//     SAILOR_JOB                          absolute path of the job spec, when it came from a file
//     SAILOR_CONFIG                       absolute path of the site config
//     SAILOR_LIMITS                       the limits of the submission (submitted_limits.h)
//     SAILOR_SUBMISSION                   the submission, if another job may continue the training
//                                         (planner/scheduler/continuation.h)
//     SAILOR_RUN                          run directory of the training that this job continues
//     SAILOR_FRESH                        set if earlier checkpoints are to be set aside
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "planner/inputs/planning_record.h"
#include "planner/plan/node_groups.h"
#include "planner/plan/plan.h"
#include "planner/plan/queued_nodes.h"
#include "planner/scheduler/scheduler.h"

namespace sailor {

using EnvironmentVariables = std::vector<std::pair<std::string, std::string>>;

// Throws std::runtime_error when the plan is larger than Slurm can send (about 1 MB packed). The planner's
// inputs are omitted if both together are too large.
EnvironmentVariables plan_environment(const Plan& plan, const PlanningFiles& planning);

void add_queued_nodes(EnvironmentVariables& variables, const std::vector<QueuedNodes>& queued);
void add_node_groups(EnvironmentVariables& variables, const std::vector<NodeGroup>& groups);

// The plan of this process's job; nothing if the job has none. Throws InputError when it is damaged.
std::optional<Plan> carried_plan(const Scheduler& scheduler);
// The groups of its nodes; empty if the job has the planned nodes. Throws InputError.
std::vector<NodeGroup> carried_node_groups(const Scheduler& scheduler);
// Empty if the job queues for none. Throws InputError.
std::vector<QueuedNodes> carried_queued_nodes(const Scheduler& scheduler);
// The planner's inputs; empty if the job does not have them. Removes them from the environment, so that the
// processes of the job do not inherit them. Throws InputError.
PlanningFiles take_carried_planning(Scheduler& scheduler);

}  // namespace sailor
