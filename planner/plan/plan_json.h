// Plans as JSON, in the form fixed by DESIGN section 5 (`"sailor_plan": 1`). Reading checks types, ranges and
// keys (InputError with file:line); whether the plan fits a job and a cluster is validate.h's question.
// Writing then reading gives the same plan.
//
// Older readers know `"zero1": true|false` and refuse keys that they do not know. So Zero::none and
// Zero::optimizer are written as they always were, and only what an older reader could not run anyway is
// written as `"zero": "gradients"`. Both spellings are read.
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
// Where a stage stands in a plan file (or, with stage < 0, a pipeline; with pipeline < 0, the list of
// pipelines), for errors that were found later. The file as a whole when it cannot be read again.
Where where_in_plan(const std::string& path, int pipeline, int stage);
// A plan that is part of another file.
Plan read_plan(const Field& field);
Plan parse_plan(const std::string& json, const std::string& file_name);
// `indent` < 0 gives one line.
std::string to_json(const Plan& plan, int indent = 2);

}  // namespace sailor
