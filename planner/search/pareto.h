// The Pareto front of throughput and cost, or another expense that is the job's objective: plans of which
// none is both slower and more expensive than another, from the cheapest to the fastest.
//
// The epsilon-constraint method over search(): first the fastest and the cheapest plan, then the fastest plan
// under budgets between the known costs, always in the widest gap of the front. If the search for a budget
// finds nothing new, the gap below it is empty, and not searched again. Candidates of all searches count.
// Deterministic if the time suffices, like search(); thread-safe; stateless.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "planner/search/search.h"

namespace sailor {

struct ParetoPoint {
  Candidate candidate;
  Expense expense = Expense::cost;
  // No plan of the space that costs at most as much is faster, none that is at most as slow is cheaper:
  // proven by the tightest limits searched that this plan meets.
  std::optional<double> bound_iteration_s;
  std::optional<double> bound;  // of the expense

  // No plan is better than this one by more than this fraction in both time and cost.
  std::optional<double> gap() const;
};

struct ParetoFront {
  SearchStatus status = SearchStatus::infeasible;
  std::vector<ParetoPoint> points;  // ascending in cost, strictly descending in time; empty unless found
  std::optional<double> bound_iteration_s;  // no plan of the space is faster, at any cost
  std::optional<double> bound;              // of the expense: none takes less, however slow
  Expense expense = Expense::cost;
  std::string reason;  // when there is no plan: SearchResult::reason
  int searches = 0;
  bool complete = false;  // every search finished
};

inline constexpr int kMostParetoPoints = 1000;

// At most `points` plans (2 to kMostParetoPoints), including the fastest and the cheapest that search()
// finds. The job's limits apply to every point; its objective does not matter. The fastest point is the plan
// that search() with the same options chooses for throughput, unless another search finds one that is faster
// by more than 1 %. options.time_limit_s applies to each search, `time_limit_s` to all of them together. The
// front is made of the candidates of all SearchResults.
ParetoFront pareto(const PlanningContext& context, const PlanOptions& options, int points,
                   double time_limit_s);

// Indices of the (seconds, spent) pairs that no other pair beats in both, ascending in cost. Of pairs that
// are equal to 1e-9 the first counts.
std::vector<size_t> undominated(const std::vector<std::pair<double, double>>& s_and_spent);

}  // namespace sailor
