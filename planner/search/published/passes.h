// One pass of the search over all configurations: their order, and the limit of each search.
#pragma once

#include "planner/search/published/search_state.h"

namespace sailor {

// Searches `state.configurations` for plans of at most `max_stages` stages: by branch and bound
// (branch_and_bound.h) for throughput with too many placement classes to list partial pipelines, else by
// iterative deepening (iterative_deepening.h). Sets pass_complete and open_value.
void search_pass(SearchState& state, Pass pass, int max_stages);

}  // namespace sailor
