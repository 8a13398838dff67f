#include "planner/search/published/published_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "planner/search/problem/goal.h"
#include "planner/search/problem/previous_plans.h"
#include "planner/search/published/passes.h"
#include "planner/search/published/previous_shape.h"
#include "planner/search/published/search_state.h"
#include "planner/spec/error.h"

namespace sailor {
namespace {

// Of the time limit, where there are previous plans: until their own turn ends, and until what was found is
// improved in other zones.
constexpr double kStartShare = 0.15, kBeforeZonesShare = 0.75;

class PublishedSearch {
 public:
  PublishedSearch(const PlanningContext& context, const PlanOptions& options) : state_(context, options) {
    state_.result.cost_model = options.cost_model;
  }

  SearchResult run() {
    list_all();
    // All replicas of a stage of one type and TP degree, or mixes too where a region has several types.
    const bool small = is_small(state_.resources);
    const Pass pass = small ? Pass::exact : types_share_a_region() ? Pass::mixed : Pass::alike;
    start_from_previous(pass);
    state_.deadline.allow(again() && !small && several_zones() ? kBeforeZonesShare : 1);
    search_configurations(pass);
    state_.deadline.allow(1);
    state_.improve_shortlist();
    finish();
    return std::move(state_.result);
  }

 private:
  bool again() const { return !state_.options.previous.empty(); }

  void search_configurations(Pass pass) {
    // After a small change most of the best plan's stages are of kinds that there were before.
    if (again() && pass == Pass::mixed) search_pass(state_, Pass::previous, kAnyStages);
    // Short pipelines are cheap to search: what they reach bounds the rest.
    if (state_.on(feature::kShortFirst))
      for (int stages = 1; stages <= 3 && state_.best_sum == kNever; ++stages)
        search_pass(state_, Pass::alike, stages);
    search_pass(state_, pass, kAnyStages);
  }

  // Previous plans, and what becomes of them with a little more or less, bound the search from the start.
  void start_from_previous(Pass pass) {
    for (const Plan& previous : state_.options.previous) {
      start_from(previous, pass);
      if (state_.deadline.elapsed_s() > kStartShare * state_.options.time_limit_s) break;
    }
  }

  void start_from(const Plan& previous, Pass pass) {
    for (Plan& plan : still_possible(previous, state_.context.job, state_.resources.usable)) {
      try {
        ++state_.result.stats.plans_scored;
        state_.candidates.score(plan, state_.result.rejected);
      } catch (const InputError&) {
        // A cell or a link that it needs is no longer profiled.
      }
    }
    state_.best_sum = std::min(state_.best_sum, state_.candidates.best());
    search_previous_shape(state_, previous, pass);
  }

  bool several_zones() const {
    const std::vector<Pool>& pools = state_.resources.pools;
    return std::any_of(pools.begin(), pools.end(),
                       [&](const Pool& pool) { return pool.zone != pools.front().zone; });
  }

  bool types_share_a_region() const {
    for (const Pool& a : state_.resources.pools)
      for (const Pool& b : state_.resources.pools)
        if (a.region == b.region && a.gpu_type != b.gpu_type) return true;
    return false;
  }

  void list_all() {
    Configurations all = list_configurations(state_.context, state_.resources, state_.tables, state_.goal,
                                             is_small(state_.resources) || !state_.on(feature::kEqualRounds),
                                             state_.result.rejected);
    const auto lower = [](std::optional<double>& bound, double value) {
      if (std::isfinite(value)) bound = std::min(bound.value_or(kNever), value);
    };
    lower(state_.result.bound_iteration_s, all.least_s);
    lower(state_.result.bound[state_.goal.followed()], all.least_charge);
    state_.configurations = std::move(all.list);
    if (state_.on(feature::kBestFirst)) state_.sort_configurations();
  }

  void finish() {
    state_.result.candidates =
        state_.candidates.placed(std::max(1, state_.options.top_k), state_.result.rejected);
    state_.result.stats.complete =
        !state_.deadline.timed_out() && !state_.deadline.cut_short() && state_.pass_complete;
    tighten_bound();
    if (!state_.result.candidates.empty()) {
      state_.result.status = SearchStatus::found;
      fill_in_predictions(state_.result);
    } else {
      const bool cut_off = state_.deadline.timed_out() || state_.deadline.cut_short();
      state_.result.status = cut_off ? SearchStatus::time_limit : SearchStatus::infeasible;
      if (cut_off)
        state_.result.reason =
            fmt::format("no plan was found within {:.3g} s: allow more time", state_.options.time_limit_s);
    }
    state_.result.stats.search_s = state_.deadline.elapsed_s();
  }

  // What the last pass left open is all that may still be better.
  void tighten_bound() {
    std::optional<double>& bound = !state_.goal.objective.expense()
                                       ? state_.result.bound_iteration_s
                                       : state_.result.bound[state_.goal.followed()];
    const double proven = std::min(state_.candidates.best(), state_.open_value);
    if (std::isfinite(proven)) bound = std::max(bound.value_or(0), proven);
    // Nothing within the only limit: all plans lie beyond it.
    if (!state_.result.stats.complete || !state_.candidates.empty()) return;
    const auto beyond = [](std::optional<double>& b, double limit) {
      b = std::max(b.value_or(0), std::nextafter(limit, kNever));
    };
    const bool limited = std::isfinite(state_.goal.max_charge()),
               time = std::isfinite(state_.goal.max_iteration_s);
    if (limited && !time) beyond(state_.result.bound[state_.goal.followed()], state_.goal.max_charge());
    if (time && !limited) beyond(state_.result.bound_iteration_s, state_.goal.max_iteration_s);
  }

  SearchState state_;
};

}  // namespace

SearchResult search_published(const PlanningContext& context, const PlanOptions& options) {
  const Goal goal = goal_of(context.job);
  if (std::count_if(kExpenses.begin(), kExpenses.end(), [&](Expense e) { return goal.carries(e); }) > 1)
    throw InputError(
        context.job.where("constraints"),
        "the published cost model searches with one expense at a time: minimize or limit only one, "
        "or plan with the native cost model");
  return PublishedSearch(context, options).run();
}

}  // namespace sailor
