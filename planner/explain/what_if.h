// What would change a plan: the same question to the planner with one thing changed, and how much better or
// worse its answer is. Deterministic when the time suffices, like search(); keeps nothing.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "planner/search/search.h"

namespace sailor {

struct WhatIf {
  enum class Kind {
    planner,  // the plan was given: what the planner would choose
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
  bool complete = false;  // the search came to its end; else there may be better
  std::string why_not;  // when there is no `best`: why no plan is possible; empty = there was no time to ask
  // By what part the objective is better with it: more iterations per second, or less of an expense.
  double gain = 0;

  // Is more possible than before, so that it can only be better?
  bool loosens() const {
    return kind == Kind::node || kind == Kind::budget || kind == Kind::floor || kind == Kind::memory;
  }
};

// Asks whatever applies to the job, its limits and the snapshot, each question for its share of
// `time_limit_s`: what loosens first, then what is less. Of the questions about one zone only the
// best answer is kept. With more nodes or a looser limit a plan that was found is still possible, so that
// such an answer is never worse than it. `given`: `chosen` was not found by a search with these options, and
// may not even be possible.
std::vector<WhatIf> what_if(const PlanningContext& context, const PlanOptions& options,
                            const Candidate& chosen, bool given, double time_limit_s);

}  // namespace sailor
