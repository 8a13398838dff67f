// How a plan travels with its job: packed (planner/plan/packed_plan.h) and cut into values that the scheduler
// carries, because one environment string must stay under 128 KiB. Under Slurm the plugin sends them.
//
//     SAILOR_PLAN_0, SAILOR_PLAN_1, ...   the plan
//     SAILOR_PLANNING_0, ...              what it was made with (planner/inputs/planning_record.h), packed
//     SAILOR_JOB                          absolute path of the job spec, when it came from a file
//     SAILOR_CONFIG                       absolute path of the site config
//     SAILOR_LIMITS                       what the submission limits (submitted_limits.h)
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "planner/inputs/planning_record.h"
#include "planner/plan/plan.h"
#include "planner/scheduler/scheduler.h"

namespace sailor {

using EnvironmentVariables = std::vector<std::pair<std::string, std::string>>;

// Throws std::runtime_error when the plan is larger than Slurm carries (about 1 MB packed). What it was made
// with is left out where both together are.
EnvironmentVariables plan_environment(const Plan& plan, const PlanningFiles& planning);

// The plan of the job that this process runs in; nothing when the job carries none. Throws InputError when it
// is damaged.
std::optional<Plan> carried_plan(const Scheduler& scheduler);
// What the plan was made with; empty when the job does not carry it. Takes it out of what this process hands
// on, so that not every process of the job inherits it. Throws InputError.
PlanningFiles take_carried_planning(Scheduler& scheduler);

}  // namespace sailor
