#include "planner/search/search.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

#include "planner/search/compose.h"
#include "planner/search/explain.h"
#include "planner/search/improve.h"
#include "planner/search/layout.h"
#include "planner/search/passes.h"
#include "planner/search/previous_plan.h"
#include "planner/search/same_shape.h"
#include "planner/search/search_state.h"
#include "planner/spec/error.h"

namespace sailor {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr double kComposeShare = 0.4;  // of the time limit, for pipelines that differ
// Of the time limit, for plans that neither recompute nor share optimizer states, where others are offered.
constexpr double kPlainShare = 0.6;
// The same when there are plans of before; until then their own turn ends, that of local improvement
// (native), and the search before what was found is improved in other zones (published).
constexpr double kPlainShareAgain = 0.78, kStartShare = 0.15, kImproveShare = 0.3, kBeforeZonesShare = 0.75;
// For placing plans: so much of the time limit, or so long, whichever is less.
constexpr double kPlacingShare = 0.1, kPlacing_s = 0.05;
// Local improvement may change the order of plans that are so close.
constexpr size_t kMostImproved = 8;
constexpr double kImprovable = 1.1;

class Search {
 public:
  Search(const PlanningContext& context, const PlanOptions& options)
      : state_(context, options), offered_(offered(options)) {
    state_.result.cost_model = options.cost_model;
  }

  SearchResult run() {
    list_all();
    // All replicas of a stage of one type and TP degree, or mixes too where a region has several types.
    const bool small = !state_.native && is_small(state_.resources);
    const bool mixes = small || types_share_a_region();
    const Pass pass = small ? Pass::exact : mixes ? Pass::mixed : Pass::alike;
    start_from_previous(pass);
    if (again() && state_.native) {
      state_.deadline.allow(kImproveShare);
      improve_best();
    }
    state_.deadline.allow(share_before_the_rest());
    search_configurations(pass, false);
    if (!further_.empty()) {
      // What recomputes or shares optimizer states comes last, so that it never costs anything else that is
      // found.
      state_.deadline.allow(search_share());
      state_.configurations = further_;
      if (state_.on(feature::kBestFirst)) state_.sort_configurations();
      search_configurations(pass, true);
    }
    if (!state_.native) {
      state_.deadline.allow(1);
      state_.improve_shortlist();
    }
    finish();
    return std::move(state_.result);
  }

 private:
  // Of the time limit. Under the native model plans are placed before one is chosen.
  double search_share() const {
    return state_.native ? 1 - std::min(kPlacingShare, kPlacing_s / state_.options.time_limit_s) : 1;
  }
  // Of the time limit, until what comes after the search of plain configurations has its turn.
  double share_before_the_rest() const {
    if (!further_.empty()) return again() ? kPlainShareAgain : kPlainShare;
    const bool zones_matter = !state_.native && !is_small(state_.resources) && several_zones();
    return again() && zones_matter ? kBeforeZonesShare : search_share();
  }

  bool again() const { return !state_.options.previous.empty(); }

  void search_configurations(Pass pass, bool further) {
    // After a small change most of the best plan's stages are of kinds that there were before.
    if (again() && !state_.native && pass == Pass::mixed) search_pass(state_, Pass::familiar, kAnyStages);
    const bool looks = state_.native && !further && state_.on(feature::kBestFirst);
    if (looks && again()) {
      look_at_alike();
      improve_best();
    }
    // Short pipelines are cheap to search: what they reach bounds the rest.
    state_.widely = state_.native;
    if (state_.on(feature::kShortFirst))
      for (int stages = 1; stages <= 3 && (state_.native || state_.best_sum == kNever); ++stages) {
        if (stages == 3 && looks && !again()) look_at_alike();
        search_pass(state_, Pass::alike, stages);
      }
    state_.widely = false;
    search_pass(state_, pass, kAnyStages);
    if (!state_.native) return;
    // Sums are not the timeline, and one cut is not all that there is: the rest of the time is for these.
    improve_best();
    if (offered_.contains(PlanFeature::unlike_shares) && offered_.contains(PlanFeature::unlike_cuts))
      compose_pipelines(further);
    state_.widely = true;
    search_pass(state_, pass, kAnyStages);
    improve_best();
  }

  // Most of the best plans have no mixed stages, and a look at those takes a tenth of a search. It wants a
  // plan to hold others against.
  void look_at_alike() {
    // Bounds of pipelines without mixed stages hold for no others.
    const std::vector<Configuration> all = state_.configurations;
    search_promising(state_, Pass::alike);
    state_.configurations = all;
  }

  static PlanFeatures offered(const PlanOptions& options) {
    PlanFeatures out;
    for (PlanFeature feature : options.allow)
      if (offers(options, feature)) out.insert(feature);
    return out;
  }

  // Plans of before, and what becomes of them with a little more or less, bound the search from the start.
  void start_from_previous(Pass pass) {
    for (const Plan& previous : state_.options.previous) {
      start_from(previous, pass);
      if (state_.deadline.elapsed_s() > kStartShare * state_.options.time_limit_s) break;
    }
    state_.configurations = plain_;
    if (state_.on(feature::kBestFirst)) state_.sort_configurations();
  }

  void start_from(const Plan& previous, Pass pass) {
    for (Plan& plan : still_possible(previous, state_.context.job, state_.resources.usable)) {
      try {
        ++state_.result.stats.plans_scored;
        if (!state_.candidates.score(plan, state_.result.rejected)) continue;
        if (const auto sum = sum_of(plan)) state_.best_sum = std::min(state_.best_sum, *sum);
      } catch (const InputError&) {
        // A cell or a link that it needs is no longer profiled.
      }
    }
    if (!state_.native) state_.best_sum = std::min(state_.best_sum, state_.candidates.best());
    state_.configurations = previous.zero1 ? further_ : plain_;
    state_.widely = state_.native;  // shapes that were good are worth a timeline
    search_same_shape(state_, previous, pass);
    state_.widely = false;
  }

  // What the search's own sums say of a plan; nothing when it has no one cut.
  std::optional<double> sum_of(const Plan& plan) const {
    const auto& tables = plan.zero1 ? state_.tables.further : state_.tables.plain;
    const auto table = std::find_if(tables.begin(), tables.end(), [&](const auto& costs) {
      return costs->microbatch() == plan.microbatch && costs->sharded() == plan.zero1;
    });
    const std::optional<Layout> layout = layout_of(state_.resources, plan);
    if (table == tables.end() || !layout) return std::nullopt;
    const int replicas = static_cast<int>(plan.pipelines.size());
    const int64_t total = num_microbatches(plan.global_batch, plan.microbatch);
    const LayoutValue value =
        evaluate(**table, state_.resources, *layout, replicas,
                 static_cast<double>((total + replicas - 1) / replicas), state_.overhead_s);
    return state_.goal.value(value.iteration_s, value.usd);
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
    plain_ = list_of(state_.tables.plain);
    further_ = list_of(state_.tables.further);
    state_.configurations = plain_;
    if (state_.on(feature::kBestFirst)) state_.sort_configurations();
  }

  std::vector<Configuration> list_of(const std::vector<std::unique_ptr<StageCosts>>& tables) {
    Configurations all = list_configurations(
        state_.context, state_.resources, tables, state_.goal, state_.overhead_s,
        is_small(state_.resources) || !state_.on(feature::kEqualRounds), state_.result.rejected);
    const auto lower = [](std::optional<double>& bound, double value) {
      if (std::isfinite(value)) bound = std::min(bound.value_or(kNever), value);
    };
    lower(state_.result.bound_iteration_s, all.least_s);
    lower(state_.result.bound_usd_per_iteration, all.least_usd);
    return std::move(all.list);
  }

  void compose_pipelines(bool further) {
    const auto enough = [&] {
      return state_.expired() ||
             (!further && state_.deadline.elapsed_s() > kComposeShare * state_.options.time_limit_s);
    };
    for (const auto& costs : further ? state_.tables.further : state_.tables.plain) {
      if (enough()) break;
      ++state_.result.stats.configurations;
      for (const Plan& plan : composed_plans(state_.context, state_.resources, *costs, enough)) {
        ++state_.result.stats.plans_scored;
        state_.candidates.score(plan, state_.result.rejected);
      }
    }
    composed_ = !enough();
  }

  void improve_best() {
    const auto value = [&](const Plan& plan) -> double {
      ++state_.result.stats.plans_scored;
      const Prediction p = simulate(state_.context, plan, state_.options.cost_model);
      const bool ok = p.fits && p.usd_per_iteration() <= state_.goal.max_usd &&
                      p.iteration_s <= state_.goal.max_iteration_s;
      return ok ? state_.candidates.value(p) : kNever;
    };
    const auto late = [&] { return state_.expired(); };
    const std::vector<std::pair<double, Plan>> ranked =
        state_.candidates.ranked(std::max<size_t>(kMostImproved, std::max(1, state_.options.top_k)));
    const double best = state_.candidates.best();
    for (size_t i = 0; i < ranked.size() && !state_.expired(); ++i) {
      if (i >= static_cast<size_t>(state_.options.top_k) && ranked[i].first > kImprovable * best) break;
      state_.candidates.score(improved(ranked[i].second, offered_, value, late), state_.result.rejected);
    }
  }

  void finish() {
    state_.result.candidates = state_.candidates.placed(
        std::max(1, state_.options.top_k), [&] { return state_.deadline.passed(); }, state_.result.rejected);
    state_.result.stats.complete =
        !state_.deadline.timed_out() && !state_.deadline.cut_short() && state_.pass_complete && composed_;
    if (!state_.native) tighten_bound();
    if (!state_.result.candidates.empty()) {
      state_.result.status = SearchStatus::found;
      for (Candidate& candidate : state_.result.candidates) {
        PlanPrediction p;
        p.iteration_s = candidate.prediction.iteration_s;
        p.usd_per_iteration = candidate.prediction.usd_per_iteration();
        p.bound_iteration_s = state_.result.bound_iteration_s;
        p.bound_usd_per_iteration = state_.result.bound_usd_per_iteration;
        p.peak_memory_bytes = candidate.prediction.peak_memory_bytes();
        candidate.plan.prediction = p;
      }
    } else {
      const bool cut_off = state_.deadline.timed_out() || state_.deadline.cut_short();
      state_.result.status = cut_off ? SearchStatus::time_limit : SearchStatus::infeasible;
      if (cut_off)
        state_.result.reason =
            fmt::format("no plan was found within {:.3g} s: allow more time", state_.options.time_limit_s);
      else if (state_.options.explain)
        state_.result.reason = explain_infeasible(state_.context, state_.options, state_.result);
    }
    state_.result.stats.search_s = state_.deadline.elapsed_s();
  }

  // What the last pass left open is all that may still be better.
  void tighten_bound() {
    std::optional<double>& bound = state_.goal.objective == Objective::throughput
                                       ? state_.result.bound_iteration_s
                                       : state_.result.bound_usd_per_iteration;
    const double proven = std::min(state_.candidates.best(), state_.open_value);
    if (std::isfinite(proven)) bound = std::max(bound.value_or(0), proven);
    // Nothing within the only limit: all plans lie beyond it.
    if (!state_.result.stats.complete || !state_.candidates.empty()) return;
    const auto beyond = [](std::optional<double>& b, double limit) {
      b = std::max(b.value_or(0), std::nextafter(limit, kNever));
    };
    const bool money = std::isfinite(state_.goal.max_usd), time = std::isfinite(state_.goal.max_iteration_s);
    if (money && !time) beyond(state_.result.bound_usd_per_iteration, state_.goal.max_usd);
    if (time && !money) beyond(state_.result.bound_iteration_s, state_.goal.max_iteration_s);
  }

  SearchState state_;
  const PlanFeatures offered_;
  std::vector<Configuration> plain_, further_;
  bool composed_ = true;  // or nothing was to be composed
};

}  // namespace

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

SearchResult search(const PlanningContext& context, const PlanOptions& options) {
  const std::vector<std::string> known = feature_names();
  for (const std::string& feature : options.without)
    if (std::find(known.begin(), known.end(), feature) == known.end())
      throw InputError(
          fmt::format("unknown search feature \"{}\" (features: {})", feature, fmt::join(known, ", ")));
  if (context.job.elastic.enabled && offers(options, PlanFeature::zero1)) {
    PlanOptions robust = options;
    robust.allow.erase(PlanFeature::zero1);
    robust.explain = false;
    SearchResult result = Search(context, robust).run();
    if (result.status == SearchStatus::found) return result;
  }
  return Search(context, options).run();
}

}  // namespace sailor
