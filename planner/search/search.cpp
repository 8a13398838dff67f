#include "planner/search/search.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

#include "planner/search/bound_tables.h"
#include "planner/search/box_search.h"
#include "planner/search/candidates.h"
#include "planner/search/compose.h"
#include "planner/search/configurations.h"
#include "planner/search/deepening.h"
#include "planner/search/explain.h"
#include "planner/search/improve.h"
#include "planner/search/layout.h"
#include "planner/search/previous_plan.h"
#include "planner/search/realize.h"
#include "planner/search/shortlist.h"
#include "planner/spec/error.h"

namespace sailor {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
// The native timeline is not a sum, least of all with few microbatches, where the stages' forwards and
// backwards overlap in part: what is within this factor of the best sum is predicted exactly before one is
// chosen.
double native_slack(double rounds) {
  return 1.05 + 0.3 / rounds;
}
// The same for the user's limits: a sum may be far above the prediction where pipelines have unequal shares,
// which matters most when they are small.
double native_limit_slack(double rounds) {
  return 1.05 + 0.5 / rounds;
}

const char* const kDominance = "dominance";
const char* const kBounding = "bounding";
const char* const kEqualRounds = "equal-rounds";
const char* const kBestFirst = "best-first";
const char* const kShortFirst = "short-first";
const char* const kDeepening = "deepening";
constexpr double kComposeShare = 0.4;  // of the time limit, for pipelines that differ
// Of the time limit, for plans that neither recompute nor share optimizer states, where others are offered.
constexpr double kPlainShare = 0.6;
constexpr int kAnyStages = 1 << 20;
// Limits that a search of mixed stages is held against; more of them bound better and cost more.
constexpr size_t kMostLimits = 48;
// The quick look before the search: partial pipelines per layer and leading mode, and configurations in a row
// that may bring nothing.
constexpr size_t kBeam = 4;
constexpr int kMostInVain = 12;
// Local improvement may change the order of plans that are so close.
constexpr size_t kMostImproved = 8;
constexpr double kImprovable = 1.1;

// More modes than that and partial pipelines are too many to list.
constexpr int kWideModes = 64;

double least_overhead_s(const PlanningContext& context, const Resources& resources) {
  double least = kNever;
  for (const Option& option : resources.options)
    least = std::min(least, context.profiles.layers.at(option.gpu_type).overheads.iteration_overhead_s);
  return std::isfinite(least) ? least : 0;
}

class Search {
 public:
  Search(const PlanningContext& context, const PlanOptions& options)
      : context_(context),
        options_(options),
        started_(std::chrono::steady_clock::now()),
        native_(options.cost_model == CostModel::native),
        resources_(usable_resources(context, options, result_.rejected)),
        goal_(goal_of(context.job)),
        offered_(offered(options)),
        candidates_(context, resources_, options.cost_model, goal_) {}

  SearchResult run() {
    overhead_s_ = native_ ? least_overhead_s(context_, resources_) : 0;
    list_all();
    start_from_previous();
    // All replicas of a stage of one type and TP degree, or mixes too where a region has several types.
    const bool small = !native_ && is_small(resources_);
    const bool mixes = small || types_share_a_region();
    const Pass pass = small ? Pass::exact : mixes ? Pass::mixed : Pass::alike;
    if (!further_.empty()) share_ = kPlainShare;
    search_configurations(pass, false);
    if (!further_.empty()) {
      // What recomputes or shares optimizer states comes last, so that it never costs anything else that is
      // found.
      share_ = 1;
      configurations_ = further_;
      if (on(kBestFirst)) sort_configurations();
      search_configurations(pass, true);
    }
    if (!native_) improve_shortlist();
    finish();
    return std::move(result_);
  }

 private:
  // What stages may be, from quick to complete. exact: every way to realize a skeleton is tried;
  // pure: its part for one replica.
  enum class Pass { alike, mixed, exact, pure };

  void search_configurations(Pass pass, bool further) {
    // Short pipelines are cheap to search: what they reach bounds the rest.
    widely_ = native_;
    if (on(kShortFirst))
      for (int stages = 1; stages <= 3 && (native_ || best_sum_ == kNever); ++stages)
        search_all(Pass::alike, stages);
    widely_ = false;
    search_all(pass, kAnyStages);
    if (!native_) return;
    // Sums are not the timeline, and one cut is not all that there is: the rest of the time is for these.
    improve_best();
    if (offered_.contains(PlanFeature::unlike_shares) && offered_.contains(PlanFeature::unlike_cuts))
      compose_pipelines(further);
    widely_ = true;
    search_all(pass, kAnyStages);
    improve_best();
  }

  static PlanFeatures offered(const PlanOptions& options) {
    PlanFeatures out;
    for (PlanFeature feature : options.allow)
      if (offers(options, feature)) out.insert(feature);
    return out;
  }

  static Goal goal_of(const JobSpec& job) {
    const auto& limits = job.constraints;
    return {job.objective, limits.max_usd_per_iteration.value_or(kNever),
            limits.min_iterations_per_s ? 1.0 / *limits.min_iterations_per_s : kNever};
  }

  bool on(const char* feature) const { return !options_.without.count(feature); }
  double elapsed_s() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - started_).count();
  }
  bool expired() {
    const double now_s = elapsed_s();
    timed_out_ = timed_out_ || now_s > options_.time_limit_s;
    cut_short_ = cut_short_ || now_s > share_ * options_.time_limit_s;
    return timed_out_ || now_s > share_ * options_.time_limit_s;
  }
  double value_bound(const Configuration& c) const { return c.bound(goal_.objective); }
  // A cut must add up to less than this to be looked at.
  double accepted_value(double rounds) const {
    return native_ && widely_ ? best_sum_ * native_slack(rounds) : best_sum_;
  }
  double accepted_value(const Configuration& c) const { return accepted_value(c.rounds); }

  bool worse(const Configuration& c) const { return on(kBounding) && value_bound(c) >= accepted_value(c); }

  // A plan of before, and what becomes of it with a little more or less, bounds the search from the start.
  void start_from_previous() {
    if (options_.previous == nullptr) return;
    for (Plan& plan : still_possible(*options_.previous, context_.job, resources_.usable)) {
      try {
        ++result_.stats.plans_scored;
        if (!candidates_.score(plan, result_.rejected)) continue;
        if (const auto sum = sum_of(plan)) best_sum_ = std::min(best_sum_, *sum);
      } catch (const InputError&) {
        // A cell or a link that it needs is no longer profiled.
      }
    }
    if (!native_) best_sum_ = std::min(best_sum_, candidates_.best());
  }

  // What the search's own sums say of a plan; nothing when it has no one cut.
  std::optional<double> sum_of(const Plan& plan) const {
    const auto& tables = plan.zero1 ? tables_.further : tables_.plain;
    const auto table = std::find_if(tables.begin(), tables.end(), [&](const auto& costs) {
      return costs->microbatch() == plan.microbatch && costs->sharded() == plan.zero1;
    });
    const std::optional<Layout> layout = layout_of(resources_, plan);
    if (table == tables.end() || !layout) return std::nullopt;
    const int replicas = static_cast<int>(plan.pipelines.size());
    const int64_t total = num_microbatches(plan.global_batch, plan.microbatch);
    const LayoutValue value = evaluate(**table, resources_, *layout, replicas,
                                       static_cast<double>((total + replicas - 1) / replicas), overhead_s_);
    return goal_.value(value.iteration_s, value.usd);
  }

  bool types_share_a_region() const {
    for (const Pool& a : resources_.pools)
      for (const Pool& b : resources_.pools)
        if (a.region == b.region && a.gpu_type != b.gpu_type) return true;
    return false;
  }

  void list_all() {
    tables_ = cost_tables(context_, resources_, options_);
    plain_ = list_of(tables_.plain);
    further_ = list_of(tables_.further);
    configurations_ = plain_;
    if (on(kBestFirst)) sort_configurations();
  }

  std::vector<Configuration> list_of(const std::vector<std::unique_ptr<StageCosts>>& tables) {
    Configurations all = list_configurations(context_, resources_, tables, goal_, overhead_s_,
                                             is_small(resources_) || !on(kEqualRounds), result_.rejected);
    const auto lower = [](std::optional<double>& bound, double value) {
      if (std::isfinite(value)) bound = std::min(bound.value_or(kNever), value);
    };
    lower(result_.bound_iteration_s, all.least_s);
    lower(result_.bound_usd_per_iteration, all.least_usd);
    return std::move(all.list);
  }

  void sort_configurations() {
    std::stable_sort(
        configurations_.begin(), configurations_.end(),
        [&](const Configuration& a, const Configuration& b) { return value_bound(a) < value_bound(b); });
  }

  std::vector<StageMode> modes_of(const StageCosts& costs, Pass pass) const {
    if (pass == Pass::exact) return all_modes(costs, resources_);
    if (pass == Pass::pure) return pure_modes(costs, resources_);
    std::vector<StageMode> modes = spread_modes(costs, resources_);
    if (pass == Pass::mixed)
      for (StageMode& mode : mixed_modes(costs, resources_)) modes.push_back(std::move(mode));
    return modes;
  }

  // One replica is no mix.
  static Pass pass_of(const Configuration& c, Pass pass) {
    return pass == Pass::exact && c.replicas == 1 ? Pass::pure : pass;
  }

  struct PassTables {
    std::unique_ptr<ModeCosts> costs;
    std::vector<ResourceLimit> limits;
    std::unique_ptr<BoundTables> bounds;
  };
  PassTables& tables_of(const Configuration& c, Pass pass) {
    const StageCosts& costs = *c.costs;
    PassTables& t = pass_tables_[pass][&costs];
    if (!t.costs) {
      std::vector<StageMode> modes = modes_of(costs, pass);
      std::vector<ResourceLimit> limits =
          resource_limits(costs, resources_, modes, pass == Pass::exact || pass == Pass::pure, kMostLimits);
      t.costs = std::make_unique<ModeCosts>(costs, resources_, std::move(modes));
      t.limits = most_binding_first(*t.costs, std::move(limits));
      t.bounds = std::make_unique<BoundTables>(*t.costs, t.limits);
    }
    return t;
  }

  void search_all(Pass pass, int max_stages) {
    pass_complete_ = true;
    open_value_ = kNever;
    if (max_stages == kAnyStages && on(kBounding) && on(kBestFirst)) {
      if (is_wide(pass)) return search_in_boxes(pass);
      if (on(kDeepening) && !native_) return search_by_deepening(pass);
      sharpen_bounds(pass);
      search_promising(pass);
    }
    for (const Configuration& c : configurations_) {
      if (worse(c) && on(kBestFirst) && !native_) break;
      if (worse(c)) continue;
      if (expired()) {
        pass_complete_ = false;
        open_value_ = std::min(open_value_, value_bound(c));
        if (on(kBestFirst)) break;
        continue;
      }
      const SkeletonOutcome outcome = search_configuration(c, pass, max_stages, 0);
      if (outcome.complete) continue;
      pass_complete_ = false;
      open_value_ = std::min(open_value_, value_bound(c));
    }
  }

  void search_by_deepening(Pass pass) {
    Deepening problem;
    for (const Configuration& c : configurations_) problem.bounds.push_back(value_bound(c));
    problem.best = [&] { return best_sum_; };
    problem.limited = std::isfinite(goal_.max_usd) || std::isfinite(goal_.max_iteration_s);
    problem.possible = [&](size_t i, double target) {
      const Configuration& c = configurations_[i];
      const Pass own = pass_of(c, pass);
      return skeletons_possible(skeleton_problem(tables_of(c, own), c, own), target);
    };
    problem.search = [&](size_t i, double target, double searched) -> std::optional<int64_t> {
      const SkeletonOutcome outcome =
          search_configuration(configurations_[i], pass, kAnyStages, 0, target, searched);
      return outcome.complete ? std::optional(outcome.labels) : std::nullopt;
    };
    problem.expired = [&] { return expired(); };
    const Deepened done = deepen(problem);
    pass_complete_ = done.complete;
    open_value_ = std::min(open_value_, done.open_value);
  }

  // Too many modes to list partial pipelines?
  bool is_wide(Pass pass) {
    return !native_ && goal_.objective == Objective::throughput && pass != Pass::exact &&
           !configurations_.empty() && tables_of(configurations_.front(), pass).costs->size() > kWideModes;
  }

  void search_in_boxes(Pass pass) {
    std::vector<BoxConfiguration> boxes;
    std::vector<const Configuration*> of;
    for (const Configuration& c : configurations_) {
      if (worse(c)) continue;
      boxes.push_back({tables_of(c, pass).costs.get(), c.replicas, c.rounds, c.bound_s});
      of.push_back(&c);
    }
    const BoxOutcome outcome = search_boxes(
        boxes, overhead_s_, [&] { return best_sum_; },
        [&](const BoxConfiguration& box, const Skeleton& skeleton) {
          const RealizeProblem form{*box.costs, box.replicas, box.rounds, overhead_s_, goal_};
          realize_skeleton(form, skeleton, *of[&box - boxes.data()]);
        },
        [&] { return expired(); });
    result_.stats.labels += outcome.priced;
    pass_complete_ = outcome.complete;
    open_value_ = kNever;
    for (const BoxConfiguration& box : boxes) open_value_ = std::min(open_value_, box.bound_s);
  }

  // Bounds that know about stages instead of work alone, and the order of search by them.
  void sharpen_bounds(Pass pass) {
    for (Configuration& c : configurations_) {
      if (expired() || (worse(c) && !native_)) break;
      if (worse(c)) continue;
      double& bound = goal_.objective == Objective::throughput ? c.bound_s : c.bound_usd;
      const Pass own = pass_of(c, pass);
      const SkeletonProblem problem = skeleton_problem(tables_of(c, own), c, own);
      bound = std::max(bound, least_skeleton_value(problem, accepted_value(c)));
    }
    sort_configurations();
  }

  // A look at a few partial pipelines only, where the best plan may be: what it finds bounds the rest.
  void search_promising(Pass pass) {
    const bool widely = std::exchange(widely_, native_);
    int in_vain = 0;
    for (const Configuration& c : configurations_) {
      if (in_vain >= kMostInVain || expired() || (worse(c) && !native_)) break;
      if (worse(c)) continue;
      const double before = best_sum_;
      search_configuration(c, pass, kAnyStages, kBeam);
      in_vain = best_sum_ < before ? 0 : in_vain + 1;
    }
    widely_ = widely;
  }

  SkeletonProblem skeleton_problem(PassTables& tables, const Configuration& c, Pass pass) const {
    SkeletonProblem problem{*tables.costs, tables.limits, c.replicas, c.rounds, overhead_s_, goal_};
    problem.dominance = on(kDominance);
    problem.pure_dominance = pass == Pass::exact;
    problem.bounding = on(kBounding);
    problem.tables = tables.bounds.get();
    // The limits are for the prediction.
    if (native_ && widely_) {
      problem.goal.max_usd *= native_limit_slack(c.rounds);
      problem.goal.max_iteration_s *= native_limit_slack(c.rounds);
    }
    return problem;
  }

  // Only for values below `target`; skeletons of less than `searched` have been realized.
  SkeletonOutcome search_configuration(const Configuration& c, Pass pass, int max_stages, size_t beam,
                                       double target = kNever, double searched = 0) {
    ++result_.stats.configurations;
    pass = pass_of(c, pass);
    PassTables& tables = tables_of(c, pass);
    SkeletonProblem problem = skeleton_problem(tables, c, pass);
    problem.max_stages = max_stages;
    problem.beam = beam;
    const RealizeProblem form{*tables.costs, c.replicas, c.rounds, overhead_s_, problem.goal};
    const SkeletonOutcome outcome = search_skeletons(
        problem, [&] { return std::min(target, accepted_value(c)); },
        [&](const Skeleton& skeleton) {
          if (goal_.value(skeleton.iteration_s, skeleton.usd) >= searched)
            realize_skeleton(form, skeleton, c);
        },
        [&] { return expired(); });
    result_.stats.labels += outcome.labels;
    if (outcome.out_of_memory) ++result_.rejected["memory"];
    if (outcome.over_budget) ++result_.rejected["budget"];
    if (outcome.too_slow) ++result_.rejected["throughput floor"];
    return outcome;
  }

  void realize_skeleton(const RealizeProblem& form, const Skeleton& skeleton, const Configuration& c) {
    ++result_.stats.plans_scored;
    bool exactly = false;
    // What is not quite as good may be when it is looked at more closely.
    const double slack = native_ || is_small(resources_) ? 1 : Shortlist::kSlack;
    std::optional<Realized> realized = realize(form, skeleton, accepted_value(c) * slack, &exactly);
    if (!exactly) open_value_ = std::min(open_value_, goal_.value(skeleton.iteration_s, skeleton.usd));
    if (!realized) return;
    if (goal_.value(realized->value.iteration_s, realized->value.usd) < accepted_value(c))
      keep(*realized, *c.costs, c.replicas);
    if (!exactly && !native_)
      shortlist_.add(form, std::move(*realized), goal_.value(skeleton.iteration_s, skeleton.usd));
  }

  void keep(const Realized& realized, const StageCosts& costs, int replicas) {
    const double value = goal_.value(realized.value.iteration_s, realized.value.usd);
    Plan plan = plan_of(context_, resources_, realized.layout, costs.microbatch(), replicas);
    plan.zero1 = costs.sharded();
    if (!native_)
      candidates_.keep(std::move(plan), value);
    else if (!candidates_.score(plan, result_.rejected))
      return;
    best_sum_ = std::min(best_sum_, value);
  }

  // Which replica runs in which zone: the few layouts that are worth it are looked at more closely.
  void improve_shortlist() {
    shortlist_.improve([&](const RealizeProblem& form) { return accepted_value(form.microbatches); },
                       [&](const RealizeProblem& form, const Realized& better) {
                         keep(better, form.costs.stage(), form.replicas);
                       },
                       [&] { return expired(); });
  }

  void compose_pipelines(bool further) {
    const auto enough = [&] {
      return expired() || (!further && elapsed_s() > kComposeShare * options_.time_limit_s);
    };
    for (const auto& costs : further ? tables_.further : tables_.plain) {
      if (enough()) break;
      ++result_.stats.configurations;
      for (const Plan& plan : composed_plans(context_, resources_, *costs, enough)) {
        ++result_.stats.plans_scored;
        candidates_.score(plan, result_.rejected);
      }
    }
    composed_ = !enough();
  }

  void improve_best() {
    const auto value = [&](const Plan& plan) -> double {
      ++result_.stats.plans_scored;
      const Prediction p = simulate(context_, plan, options_.cost_model);
      const bool ok =
          p.fits && p.usd_per_iteration() <= goal_.max_usd && p.iteration_s <= goal_.max_iteration_s;
      return ok ? candidates_.value(p) : kNever;
    };
    const auto late = [&] { return expired(); };
    const std::vector<std::pair<double, Plan>> ranked = candidates_.ranked();
    const size_t most = std::min(ranked.size(), std::max<size_t>(kMostImproved, std::max(1, options_.top_k)));
    const double best = candidates_.best();
    for (size_t i = 0; i < most && !expired(); ++i) {
      if (i >= static_cast<size_t>(options_.top_k) && ranked[i].first > kImprovable * best) break;
      candidates_.score(improved(ranked[i].second, offered_, value, late), result_.rejected);
    }
  }

  void finish() {
    result_.candidates = candidates_.placed(std::max(1, options_.top_k), result_.rejected);
    result_.stats.complete = !timed_out_ && !cut_short_ && pass_complete_ && composed_;
    if (!native_) tighten_bound();
    if (!result_.candidates.empty()) {
      result_.status = SearchStatus::found;
      for (Candidate& candidate : result_.candidates) {
        PlanPrediction p;
        p.iteration_s = candidate.prediction.iteration_s;
        p.usd_per_iteration = candidate.prediction.usd_per_iteration();
        p.bound_iteration_s = result_.bound_iteration_s;
        p.bound_usd_per_iteration = result_.bound_usd_per_iteration;
        p.peak_memory_bytes = candidate.prediction.peak_memory_bytes();
        candidate.plan.prediction = p;
      }
    } else {
      result_.status = timed_out_ ? SearchStatus::time_limit : SearchStatus::infeasible;
      if (timed_out_)
        result_.reason =
            fmt::format("no plan was found within {:.3g} s: allow more time", options_.time_limit_s);
      else if (options_.explain)
        result_.reason = explain_infeasible(context_, options_, result_);
    }
    result_.stats.search_s = elapsed_s();
  }

  // What the last pass left open is all that may still be better.
  void tighten_bound() {
    std::optional<double>& bound = goal_.objective == Objective::throughput ? result_.bound_iteration_s
                                                                            : result_.bound_usd_per_iteration;
    const double proven = std::min(candidates_.best(), open_value_);
    if (std::isfinite(proven)) bound = std::max(bound.value_or(0), proven);
    // Nothing within the only limit: all plans lie beyond it.
    if (!result_.stats.complete || !candidates_.empty()) return;
    const auto beyond = [](std::optional<double>& b, double limit) {
      b = std::max(b.value_or(0), std::nextafter(limit, kNever));
    };
    const bool money = std::isfinite(goal_.max_usd), time = std::isfinite(goal_.max_iteration_s);
    if (money && !time) beyond(result_.bound_usd_per_iteration, goal_.max_usd);
    if (time && !money) beyond(result_.bound_iteration_s, goal_.max_iteration_s);
  }

  const PlanningContext& context_;
  const PlanOptions& options_;
  const std::chrono::steady_clock::time_point started_;
  const bool native_;
  SearchResult result_;
  Resources resources_;
  Goal goal_;
  const PlanFeatures offered_;
  Candidates candidates_;
  double overhead_s_ = 0;
  CostTables tables_;
  std::map<Pass, std::map<const StageCosts*, PassTables>> pass_tables_;
  std::vector<Configuration> plain_, further_;
  std::vector<Configuration> configurations_;  // of these, what is searched now, in the order of search
  Shortlist shortlist_;
  double best_sum_ = kNever;
  bool widely_ = false;     // native: what is not quite as good by its sum may be by its timeline
  double share_ = 1;        // of the time limit that may have passed by now
  bool cut_short_ = false;  // by that
  bool timed_out_ = false;
  bool composed_ = true;        // or nothing was to be composed
  bool pass_complete_ = false;  // of the last pass
  double open_value_ = kNever;  // the least value that the last pass could not rule out
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
  return {kBestFirst, kBounding, kDeepening, kDominance, kEqualRounds, kShortFirst};
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
  return Search(context, options).run();
}

}  // namespace sailor
