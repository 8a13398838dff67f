// Plans as JSON, in the form fixed by DESIGN section 5 (`"sailor_plan": 1`). Reading checks types, ranges and keys (InputError with
// file:line); whether the plan fits a job and a cluster is validate.h's question. Writing then reading gives the same plan.
#pragma once

#include <string>

#include "planner/plan/plan.h"

namespace sailor {

Plan load_plan(const std::string& path);
Plan parse_plan(const std::string& json, const std::string& file_name);
// `indent` < 0 gives one line.
std::string to_json(const Plan& plan, int indent = 2);

}  // namespace sailor
