// Why a plan is as it is: where its time goes, what binds it, and what would change it. Value types.
#pragma once

#include <vector>

#include "planner/explain/binding.h"
#include "planner/explain/what_if.h"
#include "planner/search/search.h"
#include "planner/simulator/iteration_shares.h"

namespace sailor {

struct Explanation {
  Candidate chosen;
  bool given = false;  // by the user, not found by a search
  IterationShares shares;
  std::vector<Binding> binding;  // largest gain first; empty: nothing that was asked about would help
  std::vector<WhatIf> what_ifs;  // in the order in which they were asked
};

// `options` are those of the search that found `chosen`, or would. Takes `time_limit_s` for its searches.
Explanation explain(const PlanningContext& context, const PlanOptions& options, const Candidate& chosen,
                    bool given, double time_limit_s);

}  // namespace sailor
