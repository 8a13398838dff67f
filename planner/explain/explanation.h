// Why a plan was chosen: where its time goes, its bottlenecks, and what would change it. Value types.
#pragma once

#include <vector>

#include "planner/explain/binding.h"
#include "planner/explain/what_if.h"
#include "planner/search/search.h"
#include "planner/simulator/iteration_shares.h"

namespace sailor {

struct Explanation {
  Candidate chosen;
  bool given = false;  // from the user, not found by a search
  IterationShares shares;
  std::vector<Binding> binding;  // largest gain first; empty: no change gains enough
  std::vector<WhatIf> what_ifs;  // in the order of the searches
};

// `options` are those of the search that found, or would find, `chosen`. Its searches take at most
// `time_limit_s`.
Explanation explain(const PlanningContext& context, const PlanOptions& options, const Candidate& chosen,
                    bool given, double time_limit_s);

}  // namespace sailor
