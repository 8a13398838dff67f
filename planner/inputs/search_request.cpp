#include "planner/inputs/search_request.h"

#include <algorithm>

namespace sailor {

PlanOptions plan_options(const SearchRequest& request, const SiteConfig& site) {
  PlanOptions options;
  options.space = request.space;
  options.cost_model = request.cost_model;
  if (request.allow) options.allow = *request.allow;
  options.top_k = request.candidates;
  options.effort = request.effort.value_or(site.planner_effort);
  options.time_limit_s =
      request.time_limit_s.value_or(site.planner_time_limit_s * std::max(1.0, options.effort));
  options.effort_limit_s = options.time_limit_s;
  options.stop = request.stop;
  options.explain = request.explain;
  options.previous = request.previous;
  options.keep_precision = request.keep_precision;
  return options;
}

void keep_first(SearchResult& result, int candidates) {
  const auto most = static_cast<size_t>(std::max(candidates, 1));
  if (result.candidates.size() > most)
    result.candidates.erase(result.candidates.begin() + static_cast<ptrdiff_t>(most),
                            result.candidates.end());
}

}  // namespace sailor
