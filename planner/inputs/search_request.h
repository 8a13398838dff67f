// What a user asks of a search, and the one place where its options are made of that and of the site: whoever
// asks the same of the same inputs (`sailor plan`, `explain`, `pareto`, `report`, the plugin, the controller)
// gets the same first plan. How many candidates are shown is no part of the question, and the time limit is
// for safety: a search that ends before it does not depend on it.
#pragma once

#include <atomic>
#include <optional>
#include <vector>

#include "planner/search/search.h"
#include "planner/spec/site_config.h"

namespace sailor {

// Every search keeps as many candidates, because improving and placing more of them may change which is best.
inline constexpr int kCandidates = 8;
// As many of them are shown where nobody says how many.
inline constexpr int kShownCandidates = 5;

struct SearchRequest {
  SearchSpace space = SearchSpace::full;
  CostModel cost_model = CostModel::native;
  std::optional<PlanFeatures> allow;  // absent = what the trainer runs
  // Absent = the site's; its limit grows with an effort above 1.
  std::optional<double> time_limit_s;
  std::optional<double> effort;  // as PlanOptions::effort; absent = the site's
  int candidates = kCandidates;  // wanted; never fewer are searched for than kCandidates
  std::vector<Plan> previous;    // as PlanOptions::previous
  const std::atomic<bool>* stop = nullptr;
  bool explain = true;
};

PlanOptions plan_options(const SearchRequest& request, const SiteConfig& site);

// Drops all but the first candidates.
void keep_first(SearchResult& result, int candidates);

}  // namespace sailor
