// Searches for plans that save memory: features that take time, and gain some only with the memory that they
// save, are offered by searches of their own, near the best plans without them.
#pragma once

#include <functional>

#include "planner/search/native/space.h"
#include "planner/search/problem/plan_options.h"
#include "planner/search/problem/search_result.h"
#include "planner/spec/zero.h"

namespace sailor::native {

inline constexpr double kIdleSaving = 1.005;  // a plan without it that is no slower than this is preferred

struct Savings {
  TokenSplit split = TokenSplit::none;
  Zero shards = Zero::optimizer;  // what may replicas share at most?
  bool context = false;           // may stages split the tokens over GPUs with the same weights?
  bool offload = false;           // may stages offload?
  bool groups = false;            // may groups of pipelines each have a copy of what replicas share?

  bool any() const { return split == TokenSplit::all || shards > Zero::optimizer; }
};

// A search with savings: near options.previous only, or of everything.
using SavingSearch =
    std::function<SearchResult(const PlanOptions& options, const Savings& savings, bool near_known)>;

// Adds to the result of a search without savings what those that are `possible` gain. `from_previous`: the
// part of options.effort that a search near known plans spends.
void search_savings(const PlanningContext& context, const PlanOptions& options, const Savings& possible,
                    double from_previous, const SavingSearch& search_with, SearchResult& result);

}  // namespace sailor::native
