#include "planner/search/search.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "planner/plan/place.h"
#include "planner/plan/plan_nodes.h"
#include "planner/plan/validate.h"
#include "planner/search/explain.h"
#include "planner/search/native/native_search.h"
#include "planner/search/precision_search.h"
#include "planner/search/problem/candidates.h"
#include "planner/search/published/published_search.h"
#include "planner/simulator/simulate.h"
#include "planner/spec/error.h"

namespace sailor {
namespace {

SearchResult search_once(const PlanningContext& context, const PlanOptions& options) {
  const SearchEngine engine =
      options.cost_model == CostModel::native ? SearchEngine(native::search) : SearchEngine(search_published);
  SearchResult result = context.job.training.fallback_precision ? search_precisions(context, options, engine)
                                                                : engine(context, options);
  if (result.status == SearchStatus::infeasible && options.explain)
    result.reason = explain_infeasible(context, options, result);
  return result;
}

// The same plan with pipelines that are each together on nodes, if there is room.
std::optional<Plan> by_pipelines(const PlanningContext& context, Plan plan) {
  unplace(plan);
  try {
    place(plan, context.snapshot);
  } catch (const std::runtime_error&) {
    return std::nullopt;
  }
  return plan;
}

// Of plans that share states, those that lose none of them with a node: groups of pipelines each have a copy.
// If there is one, no others are left.
void prefer_copies(const PlanningContext& context, SearchResult& result) {
  const Goal goal = goal_of(context.job);
  std::vector<Candidate> kept;
  const auto keep_with_copies = [&](Plan plan) {
    const int pipelines = static_cast<int>(plan.pipelines.size());
    for (int group = pipelines / 2; group > 0; --group) {
      plan.zero_group = group;
      if (pipelines % group != 0 || !zero_groups_match(plan, context.job.model) ||
          !only_holders(plan).empty())
        continue;
      Prediction prediction = simulate(context, plan, CostModel::native);
      if (!prediction.fits || std::isinf(goal.allowed_value(prediction.figures()))) continue;
      kept.push_back({std::move(plan), std::move(prediction)});
      return true;
    }
    return false;
  };
  for (const Candidate& candidate : result.candidates) {
    if (!shards_optimizer(candidate.plan.zero) || candidate.only_shown || keep_with_copies(candidate.plan))
      continue;
    if (std::optional<Plan> other = by_pipelines(context, candidate.plan))
      keep_with_copies(*std::move(other));
  }
  if (kept.empty()) return;
  std::stable_sort(kept.begin(), kept.end(), better_by(goal));
  result.candidates = std::move(kept);
}

SearchResult search_with(const PlanningContext& context, const PlanOptions& options) {
  const std::vector<std::string> known = feature_names();
  for (const std::string& feature : options.without)
    if (std::find(known.begin(), known.end(), feature) == known.end())
      throw InputError(
          fmt::format("unknown search feature \"{}\" (features: {})", feature, fmt::join(known, ", ")));
  if (context.framework.uniform_plans && options.cost_model != CostModel::native)
    throw InputError(fmt::format("the {} cost model plans for Sailor's own trainer only, not for {}",
                                 to_string(options.cost_model), context.framework.name));
  if (!context.job.changes_in_place()) return search_once(context, options);
  // Chunks of a group of GPUs cannot be taken up one by one elsewhere. A change cannot offload what the job
  // has no memory for on its nodes.
  PlanOptions lasting = options;
  lasting.allow.erase(PlanFeature::interleave);
  if (!options.previous.empty() &&
      std::ranges::none_of(options.previous, [](const Plan& plan) { return offloads(plan); }))
    lasting.allow.erase(PlanFeature::offload);
  if (offers(lasting, PlanFeature::zero1)) {
    PlanOptions robust = lasting;
    for (const PlanFeature feature : {PlanFeature::zero1, PlanFeature::zero2, PlanFeature::zero3})
      robust.allow.erase(feature);
    robust.explain = false;
    SearchResult result = search_once(context, robust);
    if (result.status == SearchStatus::found) return result;
  }
  SearchResult result = search_once(context, lasting);
  if (offers(lasting, PlanFeature::hybrid_zero) && options.cost_model == CostModel::native)
    prefer_copies(context, result);
  return result;
}

}  // namespace

SearchResult search(const PlanningContext& context, const PlanOptions& options) {
  const auto wanted = static_cast<size_t>(std::max(1, options.top_k));
  PlanOptions kept = options;
  kept.top_k = static_cast<int>(std::max(wanted, kCandidates));
  SearchResult result = search_with(context, kept);
  drop_better_shown(result.candidates, better_by(goal_of(context.job)));
  result.candidates.resize(std::min(result.candidates.size(), wanted));
  return result;
}

}  // namespace sailor
