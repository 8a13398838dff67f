// What a search may do: its space, its cost model, and how much effort it takes.
#pragma once

#include <atomic>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "planner/plan/features.h"
#include "planner/plan/plan.h"
#include "planner/simulator/simulate.h"

namespace sailor {

// paper: P stages, one microbatch size, one D for all stages, every replica of a stage any (GPU type, TP
// degree, zone). full: the features of plans (plan/features.h) that PlanOptions allows beyond that.
enum class SearchSpace { paper, full };
const char* to_string(SearchSpace space);
SearchSpace parse_search_space(const std::string& text);  // throws InputError

struct PlanOptions {
  SearchSpace space = SearchSpace::full;
  CostModel cost_model = CostModel::native;
  // Of plans in the space `full` under the native cost model.
  PlanFeatures allow = trainable_features();
  int top_k = 5;  // candidates to return, best first
  // How much the native search may do, as a multiple of what it does by itself. It ends by counting what it
  // did, not by the clock.
  double effort = 1;
  // It does at most what takes about this long on a machine of today. An input like the others, while
  // time_limit_s, which may be the rest of a longer time, only ends a search that is too slow.
  double effort_limit_s = std::numeric_limits<double>::infinity();
  double time_limit_s = 2.0;
  // Once true, from any thread, it is as if the time were over. Outlives the search.
  const std::atomic<bool>* stop = nullptr;
  bool explain = true;  // when nothing is found, search under relaxed conditions to say what would help
  // For replanning: the plan that ran until now, then the other candidates of the search that it came from,
  // best first: with other nodes one of them is often the best. They bound the search, and never make the
  // result worse.
  std::vector<Plan> previous;
  std::set<std::string> without;  // features (below) switched off, for measurements
};
// What PlanOptions::without may name.
namespace feature {
inline constexpr char kBestFirst[] = "best-first";
inline constexpr char kBounding[] = "bounding";
inline constexpr char kDeepening[] = "deepening";
inline constexpr char kDominance[] = "dominance";
inline constexpr char kEqualRounds[] = "equal-rounds";
inline constexpr char kShortFirst[] = "short-first";
}  // namespace feature
std::vector<std::string> feature_names();
// Does the search with these options offer plans with the feature? The space `paper` and the published
// formulas know none.
bool offers(const PlanOptions& options, PlanFeature feature);

}  // namespace sailor
