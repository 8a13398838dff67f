// One instance: compares the search with the enumeration, for both objectives, with and without limits.
//
// Values are minimized: seconds per iteration for throughput, USD per iteration for cost. The enumeration's
// own judge scores the plan of the search. A row fails if that score is not the optimum (1e-9 relative), if
// plan or prediction are invalid, or if a bound is above the true value.
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
  std::vector<std::string> failures;  // one kind each; empty: the row passes
  std::string detail;                 // of the failures, for people
  std::optional<GridPlan> best;
  std::optional<Plan> found;

  std::string limit() const;  // `none`, `max_usd=...` or `min_iter_per_s=...`
};

// No limits; 20 budgets from the cheapest to the fastest plan and one below; 5 throughput floors from the
// cheapest to the fastest plan and one above.
std::vector<Row> check_instance(const Problem& problem, const Enumeration& enumeration, double time_limit_s);

// Properties of this plan that a planner may miss, such as `mixed stage`, on one line.
std::string traits(const Problem& problem, const GridPlan& plan);

}  // namespace sailor::oracle
