#include "planner/search/problem/plan_options.h"

#include "planner/spec/error.h"

namespace sailor {

const char* to_string(SearchSpace space) {
  return space == SearchSpace::paper ? "paper" : "full";
}

SearchSpace parse_search_space(const std::string& text) {
  if (text == "paper") return SearchSpace::paper;
  if (text == "full") return SearchSpace::full;
  throw InputError("unknown search space \"" + text + "\" (paper or full)");
}

std::vector<std::string> feature_names() {
  return {feature::kBestFirst, feature::kBounding,    feature::kDeepening,
          feature::kDominance, feature::kEqualRounds, feature::kShortFirst};
}

bool offers(const PlanOptions& options, PlanFeature feature) {
  return options.space == SearchSpace::full && options.cost_model == CostModel::native &&
         options.allow.contains(feature);
}

}  // namespace sailor
