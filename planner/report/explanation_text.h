// An explanation for people and for programs. Pure.
#pragma once

#include <string>

#include "planner/explain/explanation.h"

namespace sailor {

// At most 100 columns wide, but for sentences; ends in a newline.
std::string explanation_text(const PlanningContext& context, const Explanation& explanation);
// `"sailor_explanation": 1`; the schema is in etc/doc/plan-result.md. `result` is the search's; of a plan
// that was given, it says nothing but how it was predicted.
std::string explanation_json(const PlanningContext& context, const SearchResult& result,
                             const Explanation* explanation);

}  // namespace sailor
