// One instance: what the search finds against what enumeration finds, for both objectives, with and without
// limits.
//
// Values are what is minimised: seconds per iteration for throughput, USD per iteration for cost. The plan of
// the search is scored by the enumeration's own judge; a row fails when that score is not the optimum (1e-9
// relative), when plan or prediction do not hold, or when a bound is above what it bounds.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "planner/search/search.h"
#include "tests/oracle/enumerate.h"
#include "tests/oracle/problem.h"

namespace sailor::oracle {

struct Row {
  Objective objective = Objective::throughput;
  std::optional<double> max_usd, min_iterations_per_s;
  std::optional<double> optimum, ours, bound;  // empty: no plan, no bound
  bool equal = false;
  std::vector<std::string> failures;  // a kind each; empty: the row passes
  std::string detail;                 // of the failures, for people
  std::optional<GridPlan> best;
  std::optional<Plan> found;

  std::string limit() const;  // `none`, `max_usd=...` or `min_iter_per_s=...`
};

// No limits; 20 budgets from the cheapest to the fastest plan and one below; 5 floors of throughput from the
// cheapest to the fastest plan and one above.
std::vector<Row> check_instance(const Problem& problem, const Enumeration& enumeration, double time_limit_s);

// What makes this plan one that a planner may miss, such as `mixed stage`, in one line.
std::string traits(const Problem& problem, const GridPlan& plan);

}  // namespace sailor::oracle
