#include "planner/search/precision_search.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "planner/search/problem/candidates.h"
#include "planner/spec/error.h"

namespace sailor {
namespace {

// On the GPUs that have the precision.
SearchResult search_in(Precision precision, const PlanningContext& context, PlanOptions options,
                       const SearchEngine& engine) {
  PlanningContext own = in_precision(context, precision);
  Snapshot snapshot = context.snapshot;
  std::erase_if(snapshot.nodes, [&](const SnapshotNode& node) {
    return context.profiles.usable(node.gpu_type) && !own.profiles.layers.contains(node.gpu_type);
  });
  for (Plan& plan : options.previous) plan.precision.reset();
  SearchResult result =
      engine({own.job, snapshot, own.catalog, own.profiles, own.framework, own.precision}, options);
  for (Candidate& candidate : result.candidates) candidate.plan.precision = precision;
  return result;
}

// A plan of the fallback's search without a GPU type that needs it is one in the first precision.
void prefer_first_precision(const PlanningContext& context, CostModel model, SearchResult& result) {
  const Goal goal = goal_of(context.job);
  std::erase_if(result.candidates, [&](Candidate& candidate) {
    const std::set<std::string> types = gpu_types_of(candidate.plan);
    if (!std::all_of(types.begin(), types.end(),
                     [&](const std::string& type) { return context.profiles.layers.contains(type); }))
      return false;
    candidate.plan.precision = context.precision;
    try {
      candidate.prediction = simulate(context, candidate.plan, model);
    } catch (const InputError&) {  // a shape that is profiled in the fallback only
      return true;
    }
    return !candidate.prediction.fits || std::isinf(goal.allowed_value(candidate.prediction.figures()));
  });
}

std::optional<double> lower(std::optional<double> a, std::optional<double> b) {
  return a && b ? std::optional(std::min(*a, *b)) : std::nullopt;
}

SearchResult best_of(SearchResult a, SearchResult b, const Goal& goal, int top_k) {
  add_candidates(a, std::move(b.candidates), goal, top_k);
  a.bound_iteration_s = lower(a.bound_iteration_s, b.bound_iteration_s);
  for (const Expense expense : kExpenses) a.bound[expense] = lower(a.bound[expense], b.bound[expense]);
  for (const auto& [reason, count] : b.rejected) a.rejected[reason] += count;
  a.stats += b.stats;
  if (!a.candidates.empty()) {
    a.status = SearchStatus::found;
    a.reason.clear();
    fill_in_predictions(a);
  } else if (b.status == SearchStatus::time_limit) {
    a.status = b.status;
    a.reason = b.reason;
  }
  return a;
}

}  // namespace

SearchResult search_precisions(const PlanningContext& context, const PlanOptions& options,
                               const SearchEngine& engine) {
  const Precision first = context.job.training.precision, fallback = *context.job.training.fallback_precision;
  if (options.keep_precision) {
    SearchResult kept = search_in(*options.keep_precision, context, options, engine);
    if (kept.status != SearchStatus::infeasible) return kept;
    SearchResult other =
        search_in(*options.keep_precision == first ? fallback : first, context, options, engine);
    return other.status == SearchStatus::infeasible ? kept : other;
  }
  const auto any_free = [&](bool has_first) {
    return std::any_of(context.snapshot.nodes.begin(), context.snapshot.nodes.end(),
                       [&](const SnapshotNode& node) {
                         return !node.free_gpus.empty() && context.profiles.usable(node.gpu_type) &&
                                context.profiles.layers.contains(node.gpu_type) == has_first;
                       });
  };
  if (!any_free(false)) return search_in(first, context, options, engine);
  if (!any_free(true)) return search_in(fallback, context, options, engine);
  PlanOptions half = options;
  half.effort_limit_s /= 2;
  half.time_limit_s /= 2;
  SearchResult in_first = search_in(first, context, half, engine);
  SearchResult in_fallback = search_in(fallback, context, half, engine);
  prefer_first_precision(context, options.cost_model, in_fallback);
  return best_of(std::move(in_first), std::move(in_fallback), goal_of(context.job), options.top_k);
}

}  // namespace sailor
