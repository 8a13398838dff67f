// Text and JSON of an explanation. Pure.
#pragma once

#include <string>
#include <vector>

#include "planner/explain/explanation.h"
#include "planner/start/choose_start.h"

namespace sailor {

// At most 100 columns wide, except for sentences; ends in a newline.
std::string explanation_text(const PlanningContext& context, const Explanation& explanation);
// `"sailor_explanation": 1`; the schema is in etc/doc/plan-result.md. `result` is that of the search; for a
// given plan it only has the cost model. `starts`: when the job could start, best first.
std::string explanation_json(const PlanningContext& context, const SearchResult& result,
                             const Explanation* explanation, const std::vector<StartOption>& starts = {});

}  // namespace sailor
