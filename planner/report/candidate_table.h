// The table that explains a choice: a row per candidate plan, a mark on the chosen one, then why others were
// left out.
#pragma once

#include <string>

#include "planner/search/search.h"

namespace sailor {

// Columns as wide as what stands in them, at most 120 characters in all, but for the list of reasons; ends in
// a newline. The first candidate is the chosen one. Rows are given the zones of GPUs where the snapshot has
// several.
std::string candidate_table(const PlanningContext& context, const SearchResult& result);
// What stands below the rows: what was searched, how good the chosen plan is proven to be, what was left out.
std::string candidate_footer(const PlanningContext& context, const SearchResult& result);
// Machine-readable form of the whole result, `"sailor_plan_result": 1`; the schema is in
// etc/doc/plan-result.md.
std::string result_json(const PlanningContext& context, const SearchResult& result);

}  // namespace sailor
