// The simulator: plan -> prediction. Pure and thread-safe.
#pragma once

#include <string>

#include "planner/plan/plan.h"
#include "planner/profile/profile_set.h"
#include "planner/simulator/prediction.h"
#include "planner/spec/catalog.h"
#include "planner/spec/framework_style.h"
#include "planner/spec/job_spec.h"
#include "planner/spec/snapshot.h"

namespace sailor {

// The inputs of every prediction. References: all must outlive the call.
struct PlanningContext {
  const JobSpec& job;
  const Snapshot& snapshot;
  const Catalog& catalog;
  const ProfileSet& profiles;
  const FrameworkStyle& framework = own_framework();
  Precision precision = job.training.precision;  // of `profiles`
};
// The same with the profiles of the precision, of a job that leaves it to its plans.
PlanningContext in_precision(const PlanningContext& context, Precision precision);
// The same in the plan's precision.
PlanningContext under(const Plan& plan, const PlanningContext& context);

// native: the schedule that the framework executes, as an event timeline. published: the formulas of the
// reference COST_MODEL.md, to compare plans of different planners by one judge.
enum class CostModel { native, published };
const char* to_string(CostModel model);
CostModel parse_cost_model(const std::string& text);  // throws InputError

// Requires a plan that check_plan(plan, job) accepts. Throws InputError when the plan needs a (GPU type,
// microbatch, TP degree) cell or a link that is not profiled: a missing cell is never free.
Prediction simulate(const PlanningContext& context, const Plan& plan, CostModel model = CostModel::native);

}  // namespace sailor
