// Options of a search: its space, its cost model, and its effort.
#pragma once

#include <atomic>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "planner/plan/features.h"
#include "planner/plan/plan.h"
#include "planner/simulator/simulate.h"

namespace sailor {

// paper: P stages, one microbatch size, one D for all stages, and any (GPU type, TP degree, zone) for every
// replica of a stage. full: also the features of plans (plan/features.h) that PlanOptions allows.
enum class SearchSpace { paper, full };
const char* to_string(SearchSpace space);
SearchSpace parse_search_space(const std::string& text);  // throws InputError

// Candidates that a search always keeps: placing and improving them may change which is best.
inline constexpr size_t kCandidates = 8;

struct PlanOptions {
  SearchSpace space = SearchSpace::full;
  CostModel cost_model = CostModel::native;
  // Features of plans in the space `full` under the native cost model.
  PlanFeatures allow = trainable_features();
  // Most candidates to return, best first. Whatever the number, the first of them are the same.
  int top_k = 5;
  // Factor on the effort of the native search, which is counted, not timed.
  double effort = 1;
  // Limits the effort to about this time on a current machine. It is an input like the others, while
  // time_limit_s, which may be the rest of a longer time, only ends a search that is too slow.
  double effort_limit_s = std::numeric_limits<double>::infinity();
  double time_limit_s = 10.0;
  // Once true, from any thread, the time counts as over. Must outlive the search.
  const std::atomic<bool>* stop = nullptr;
  bool explain = true;    // if no plan is found, search with relaxed limits for a change that helps
  bool any_plan = false;  // the question is whether there is one: the native search ends with the first
  // For replanning: the plan that ran until now, then the other candidates of its search, best first: with
  // other nodes one of them is often the best. They bound the search, and never make the result worse.
  std::vector<Plan> previous;
  // Of a job that leaves the precision to its plans: one that runs keeps it while any plan has it.
  std::optional<Precision> keep_precision{};
  std::set<std::string> without;  // features (below) that are disabled, for measurements
};
// Names for PlanOptions::without.
namespace feature {
inline constexpr char kBestFirst[] = "best-first";
inline constexpr char kBounding[] = "bounding";
inline constexpr char kDeepening[] = "deepening";
inline constexpr char kDominance[] = "dominance";
inline constexpr char kEqualRounds[] = "equal-rounds";
inline constexpr char kShortFirst[] = "short-first";
}  // namespace feature
std::vector<std::string> feature_names();
// Does the search with these options offer plans with the feature? The space `paper` and the published cost
// model have none.
bool offers(const PlanOptions& options, PlanFeature feature);

}  // namespace sailor
