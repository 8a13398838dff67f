// The effect of single changes on a plan: the same search with one input changed, and how much better or
// worse its result is. Deterministic if the time suffices, like search(); stateless.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "planner/search/search.h"

namespace sailor {

struct WhatIf {
  enum class Kind {
    planner,  // the planner's own choice, for a given plan
    less,     // fewer GPUs, one GPU type
    zone,     // one zone
    node,     // one more node of a GPU type
    budget,   // a larger one, or none
    floor,    // no limit on throughput
    memory    // more on every GPU
  };
  Kind kind = Kind::less;
  std::string change;               // `half of the GPUs`
  std::string gpu_type;             // of a node
  Expense expense = Expense::cost;  // of a budget
  std::optional<Candidate> best;
  bool complete = false;  // the search finished; otherwise a better plan may exist
  std::string why_not;    // without `best`: why no plan is feasible; empty = no time was left
  // Relative improvement of the objective: more iterations per second, or less of an expense.
  double gain = 0;

  // Does the change only add possibilities, so that the result can only be better?
  bool loosens() const {
    return kind == Kind::node || kind == Kind::budget || kind == Kind::floor || kind == Kind::memory;
  }
};

// Runs all searches that apply to the job, its limits and the snapshot, each for its share of `time_limit_s`:
// first those that add possibilities, then those that remove some. Of the searches for single zones only the
// best result is kept. With more nodes or a looser limit, `chosen` remains feasible, so such a result is
// never worse than it. `given`: `chosen` was not found by a search with these options, and may not even be
// feasible.
std::vector<WhatIf> what_if(const PlanningContext& context, const PlanOptions& options,
                            const Candidate& chosen, bool given, double time_limit_s);

}  // namespace sailor
