// Converts a problem to the planner's own types, and plans in both directions.
#pragma once

#include <optional>

#include "planner/search/search.h"
#include "tests/oracle/problem.h"

namespace sailor::oracle {

// Owns everything that a PlanningContext refers to.
struct PlannerInputs {
  JobSpec job;
  Snapshot snapshot;
  Catalog catalog;
  ProfileSet profiles;
  FrameworkStyle framework = own_framework();

  PlanningContext context() const { return {job, snapshot, catalog, profiles, framework}; }
};

PlannerInputs planner_inputs(const Problem& problem);
LinkCurve link_curve(const std::pair<End, End>& ends, const Curve& curve);

Plan planner_plan(const Problem& problem, const GridPlan& plan);  // not placed on nodes
// Nothing if the plan is outside the paper's search space (pipelines with different layer splits) or uses
// something that the problem does not have.
std::optional<GridPlan> grid_plan(const Problem& problem, const Plan& plan);

}  // namespace sailor::oracle
