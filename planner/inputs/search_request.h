// A user's search request, and the only place that derives search options from it and the site. So all
// callers with the same request and inputs (`sailor plan`, `explain`, `pareto`, `report`, the plugin, the
// controller) get the same first plan. The time limit does not affect it, unless the search reaches it.
#pragma once

#include <atomic>
#include <optional>
#include <vector>

#include "planner/search/search.h"
#include "planner/spec/site_config.h"

namespace sailor {

// Number of candidates to show by default.
inline constexpr int kShownCandidates = 5;

struct SearchRequest {
  SearchSpace space = SearchSpace::full;
  CostModel cost_model = CostModel::native;
  std::optional<PlanFeatures> allow;  // absent = what the trainer supports
  // Absent = the site's; an effort above 1 increases it.
  std::optional<double> time_limit_s;
  std::optional<double> effort;               // as PlanOptions::effort; absent = the site's
  int candidates = kCandidates;               // as PlanOptions::top_k
  std::vector<Plan> previous;                 // as PlanOptions::previous
  std::optional<Precision> keep_precision{};  // as PlanOptions::keep_precision
  const std::atomic<bool>* stop = nullptr;
  bool explain = true;
};

PlanOptions plan_options(const SearchRequest& request, const SiteConfig& site);

// Drops all but the first candidates.
void keep_first(SearchResult& result, int candidates);

}  // namespace sailor
