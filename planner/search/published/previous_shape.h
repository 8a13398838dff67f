// The shape of a previous plan on the cluster as it is now: its cut and its kinds of stages, with other
// numbers of pipelines and sizes of microbatches. Where few nodes came or went that is often the best plan
// again, but for the zones that its replicas are in; and it takes milliseconds.
#pragma once

#include "planner/search/published/search_state.h"

namespace sailor {

// Assigns GPUs to the shape with more and with fewer pipelines, and microbatches of its size, of twice and of
// half of it, and keeps in `state` what is better than what is known. Nothing when the pipelines of the plan
// have unlike cuts, or when a stage's GPUs are all gone.
void search_previous_shape(SearchState& state, const Plan& previous, Pass pass);

}  // namespace sailor
