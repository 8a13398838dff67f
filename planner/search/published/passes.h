// One pass of the search over all configurations: in which order they are searched, and how far each time.
#pragma once

#include "planner/search/published/search_state.h"

namespace sailor {

// Searches `state.configurations` for plans of at most `max_stages` stages. By deepening
// (iterative_deepening.h) under the published model, in boxes (branch_and_bound.h) where there are many
// placement classes, else from the best bound on with a beam over the promising ones first. Says in `state`
// whether it was complete, and what it left open.
void search_pass(SearchState& state, Pass pass, int max_stages);
// A beam over a few partial pipelines, where the best plan may be: what it finds bounds the rest. Leaves the
// configurations in the order of bounds that know about stages, but hold for stages of that pass only.
void search_promising(SearchState& state, Pass pass);

}  // namespace sailor
