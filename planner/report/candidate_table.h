// The table of candidates: a row per plan, a mark on the chosen one, then the rejected candidates by reason.
#pragma once

#include <optional>
#include <string>

#include "planner/search/search.h"
#include "planner/start/planned_start.h"

namespace sailor {

// At most 120 characters wide, except for the list of reasons; ends in a newline. The first candidate is the
// chosen one. Rows show zones if the snapshot has several.
// With the start of the job there are columns for it and for the ends.
std::string candidate_table(const PlanningContext& context, const SearchResult& result,
                            const std::optional<PlannedStart>& start = {});
// The lines below the rows: size of the search, proven bound, rejected candidates by reason.
std::string candidate_footer(const PlanningContext& context, const SearchResult& result);
// Machine-readable form of the whole result, `"sailor_plan_result": 1`; the schema is in
// etc/doc/plan-result.md.
std::string result_json(const PlanningContext& context, const SearchResult& result);

}  // namespace sailor
