// The shape of a previous plan on the current cluster: its layer split and its kinds of stages, with other
// numbers of pipelines and microbatch sizes. After small changes that is often the best plan again, except
// for the zones of its replicas; and it takes milliseconds.
#pragma once

#include "planner/search/published/search_state.h"

namespace sailor {

// Assigns GPUs to the shape with more and with fewer pipelines, and with the same, twice and half the
// microbatch size, and keeps improvements in `state`. Does nothing if the pipelines of the plan have
// different layer splits, or if all GPUs of a stage are gone.
void search_previous_shape(SearchState& state, const Plan& previous, Pass pass);

}  // namespace sailor
