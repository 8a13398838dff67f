// The front of throughput against cost, or against another expense that is the job's objective: plans of
// which none is both slower and more expensive than another, from the cheapest to the fastest.
//
// The epsilon-constraint method over search(): the fastest and the cheapest plan first, then the fastest plan
// under budgets between the costs that are known, always where the front has its widest hole. A budget whose
// search finds nothing new says that the hole below it is empty, so it is not asked again. Candidates of all
// searches count. Deterministic when the time suffices, like search(); thread-safe; keeps nothing.
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
  // No plan of the space that is at most as dear is faster, none that is at most as slow is cheaper: proven
  // by the tightest limits searched that this plan meets.
  std::optional<double> bound_iteration_s;
  std::optional<double> bound;  // of the expense

  // No plan is better than this one by more than this part in both time and cost.
  std::optional<double> gap() const;
};

struct ParetoFront {
  SearchStatus status = SearchStatus::infeasible;
  std::vector<ParetoPoint> points;  // ascending in cost, strictly descending in time; empty unless found
  std::optional<double> bound_iteration_s;  // no plan of the space is faster, whatever it costs
  std::optional<double> bound;              // of the expense: none takes less, however slow
  Expense expense = Expense::cost;
  std::string reason;  // when there is no plan: SearchResult::reason
  int searches = 0;
  bool complete = false;  // every search came to its end
};

inline constexpr int kMostParetoPoints = 1000;

// At most `points` plans (2 to kMostParetoPoints), the fastest and the cheapest that search() finds among
// them. The job's limits hold for every point; its objective does not matter. The fastest point is the plan
// that search() with the same options chooses for throughput, unless another search finds one that is faster
// by more than 1 %; options.time_limit_s is for each search, `time_limit_s` for all of them together. The
// candidates of SearchResult are what it is made of.
ParetoFront pareto(const PlanningContext& context, const PlanOptions& options, int points,
                   double time_limit_s);

// Indices of the (seconds, spent) pairs that no other pair beats in both, ascending in cost. Of pairs that
// are alike to 1e-9 the first counts.
std::vector<size_t> undominated(const std::vector<std::pair<double, double>>& s_and_spent);

}  // namespace sailor
