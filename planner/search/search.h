// The search: GPUs and parallelization together, under the user's objective and limits.
//
// A pure function of its arguments: no global state, deterministic (only SearchStats contain wall time),
// independent of the order of nodes in the snapshot, and of the number of candidates to return.
// Resource-exact: never more GPUs of a type in a zone than are free, never a TP group across nodes. Anytime:
// at the time limit it returns the best plan so far.
#pragma once

#include "planner/search/problem/plan_options.h"
#include "planner/search/problem/search_result.h"

namespace sailor {

// An elastic job gets a plan with ZeRO-1 only if none is feasible without, because state that only one rank
// has is lost with it; and never an interleaved plan. Throws InputError when the job names something that the
// snapshot does not have.
SearchResult search(const PlanningContext& context, const PlanOptions& options);

}  // namespace sailor
