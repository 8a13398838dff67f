// Plans as JSON, in the form fixed by DESIGN section 5 (`"sailor_plan": 1`). Reading checks types, ranges and
// keys (InputError with file:line); validate.h checks whether the plan fits a job and a cluster. Writing then
// reading gives the same plan.
//
// Older readers know `"zero1": true|false` and reject unknown keys. So Zero::none and Zero::optimizer are
// written in the old form, and only Zero::gradients, which older versions cannot run, as `"zero":
// "gradients"`. Both forms are read.
#pragma once

#include <string>
#include <vector>

#include "planner/plan/plan.h"
#include "planner/spec/error.h"
#include "planner/spec/field.h"

namespace sailor {

Plan load_plan(const std::string& path);
// The plan of a plan file, or all candidates of a result of `sailor plan --format json`, best first.
std::vector<Plan> load_candidates(const std::string& path);
// The position of a stage in a plan file (with stage < 0 of a pipeline; with pipeline < 0 of the list of
// pipelines), for errors after parsing. The file without a line if it cannot be read again.
Where where_in_plan(const std::string& path, int pipeline, int stage);
// Reads a plan that is part of another file.
Plan read_plan(const Field& field);
Plan parse_plan(const std::string& json, const std::string& file_name);
// `indent` < 0 gives one line.
std::string to_json(const Plan& plan, int indent = 2);

}  // namespace sailor
