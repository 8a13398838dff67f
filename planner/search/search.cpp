#include "planner/search/search.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <set>

#include "planner/search/bounds.h"
#include "planner/search/candidates.h"
#include "planner/search/compose.h"
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
// The same for the user's limits: a sum may be far above the prediction where pipelines have unequal shares.
constexpr double kNativeLimitSlack = 1.5;

const char* const kDominance = "dominance";
const char* const kBounding = "bounding";
const char* const kEqualRounds = "equal-rounds";
const char* const kBestFirst = "best-first";
const char* const kShortFirst = "short-first";
constexpr double kComposeShare = 0.4;  // of the time limit, for pipelines that differ
constexpr int kAnyStages = 1 << 20;
// Limits that a search of mixed stages is held against; more of them bound better and cost more.
constexpr size_t kMostLimits = 48;
// The quick look before the search: partial pipelines per layer and leading mode, and configurations in a row
// that may bring nothing.
constexpr size_t kBeam = 4;
constexpr int kMostInVain = 12;

// One (microbatch, D).
struct Configuration {
  const StageCosts* costs;
  int replicas;
  double rounds;  // microbatches of the busiest pipeline
  double bound_s;
  double bound_usd;
};

std::vector<int> microbatch_sizes(const PlanningContext& context, const Resources& resources) {
  std::set<int> sizes;
  for (const Option& option : resources.options)
    for (const auto& [cell, times] : context.profiles.layers.at(option.gpu_type).cells)
      if (cell.second == option.tp && cell.first <= context.job.training.global_batch)
        sizes.insert(cell.first);
  return {sizes.begin(), sizes.end()};
}

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
        candidates_(context, resources_, options.cost_model, goal_) {}

  SearchResult run() {
    overhead_s_ = native_ ? least_overhead_s(context_, resources_) : 0;
    list_configurations();
    start_from_previous();
    // All replicas of a stage of one type and TP degree, or mixes too where a region has several types.
    const bool small = !native_ && is_small(resources_);
    const bool mixes = small || types_share_a_region();
    // Short pipelines are cheap to search: what they reach bounds the rest.
    if (on(kShortFirst))
      for (int stages = 1; stages <= 3 && (native_ || best_sum_ == kNever); ++stages)
        search_all(Pass::alike, stages);
    // What the trainer can run beyond one cut and one D has its share of the time.
    if (native_ && options_.space == SearchSpace::full) compose_pipelines();
    if (!mixes) search_all(Pass::alike, kAnyStages);
    if (mixes) search_all(small ? Pass::exact : Pass::mixed, kAnyStages);
    if (native_) improve_best();
    if (!native_) improve_shortlist();
    finish();
    return std::move(result_);
  }

 private:
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
    timed_out_ = timed_out_ || elapsed_s() > options_.time_limit_s;
    return timed_out_;
  }
  double value_bound(const Configuration& c) const {
    return goal_.objective == Objective::throughput ? c.bound_s : c.bound_usd;
  }
  // A cut must add up to less than this to be looked at.
  double accepted_value(double rounds) const {
    return native_ ? best_sum_ * native_slack(rounds) : best_sum_;
  }
  double accepted_value(const Configuration& c) const { return accepted_value(c.rounds); }

  bool worse(const Configuration& c) const { return on(kBounding) && value_bound(c) >= accepted_value(c); }

  void start_from_previous() {
    if (options_.previous == nullptr) return;
    const std::optional<Plan> plan = still_possible(*options_.previous, context_.job, resources_.usable);
    try {
      if (plan && candidates_.score(*plan, result_.rejected)) best_sum_ = candidates_.best();
    } catch (const InputError&) {
      // A cell or a link that it needs is no longer profiled.
    }
  }

  // What stages may be, from quick to complete. exact: every way to realize a skeleton is tried;
  // pure: its part for one replica.
  enum class Pass { alike, mixed, exact, pure };

  bool types_share_a_region() const {
    for (const Pool& a : resources_.pools)
      for (const Pool& b : resources_.pools)
        if (a.region == b.region && a.gpu_type != b.gpu_type) return true;
    return false;
  }

  void list_configurations() {
    int gpus = 0;
    for (const Pool& pool : resources_.pools) gpus += pool.gpus();
    const bool small = is_small(resources_);
    double bound_s = kNever, bound_usd = kNever;
    for (int microbatch : microbatch_sizes(context_, resources_)) {
      tables_.push_back(std::make_unique<StageCosts>(context_, resources_, options_.cost_model, microbatch));
      const StageCosts& costs = *tables_.back();
      const WorkBound bound(costs, resources_);
      const int64_t total = num_microbatches(context_.job.training.global_batch, microbatch);
      const int most = static_cast<int>(std::min<int64_t>(total, gpus));
      int64_t last_rounds = 0;
      for (int replicas = 1; replicas <= most; ++replicas) {
        const int64_t rounds = (total + replicas - 1) / replicas;
        Configuration c{&costs, replicas, static_cast<double>(rounds),
                        bound.iteration_s(replicas, total) + overhead_s_, bound.usd(replicas, total)};
        const bool same = rounds == last_rounds;
        last_rounds = rounds;
        if (!std::isfinite(c.bound_s)) continue;
        if (!bound.memory_suffices(replicas)) {
          ++result_.rejected["memory"];
          continue;
        }
        if (c.bound_s > goal_.max_iteration_s) {
          ++result_.rejected["throughput floor"];
          continue;
        }
        if (c.bound_usd > goal_.max_usd) {
          ++result_.rejected["budget"];
          continue;
        }
        bound_s = std::min(bound_s, c.bound_s);
        bound_usd = std::min(bound_usd, c.bound_usd);
        // As many rounds with more replicas: more to synchronise, more GPUs, nothing gained.
        if (same && !small && on(kEqualRounds)) continue;
        configurations_.push_back(c);
      }
    }
    if (std::isfinite(bound_s)) result_.bound_iteration_s = bound_s;
    if (std::isfinite(bound_usd)) result_.bound_usd_per_iteration = bound_usd;
    if (on(kBestFirst)) sort_configurations();
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
  };
  PassTables& tables_of(const Configuration& c, Pass pass) {
    const StageCosts& costs = *c.costs;
    PassTables& t = pass_tables_[pass][&costs];
    if (!t.costs) {
      std::vector<StageMode> modes = modes_of(costs, pass);
      t.limits =
          resource_limits(costs, resources_, modes, pass == Pass::exact || pass == Pass::pure, kMostLimits);
      t.costs = std::make_unique<ModeCosts>(costs, resources_, std::move(modes));
    }
    return t;
  }

  void search_all(Pass pass, int max_stages) {
    pass_complete_ = true;
    open_value_ = kNever;
    if (max_stages == kAnyStages && on(kBounding) && on(kBestFirst)) {
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
    int in_vain = 0;
    for (const Configuration& c : configurations_) {
      if (in_vain >= kMostInVain || expired() || (worse(c) && !native_)) break;
      if (worse(c)) continue;
      const double before = best_sum_;
      search_configuration(c, pass, kAnyStages, kBeam);
      in_vain = best_sum_ < before ? 0 : in_vain + 1;
    }
  }

  SkeletonProblem skeleton_problem(PassTables& tables, const Configuration& c, Pass pass) const {
    SkeletonProblem problem{*tables.costs, tables.limits, c.replicas, c.rounds, overhead_s_, goal_};
    problem.dominance = on(kDominance);
    problem.pure_dominance = pass == Pass::exact;
    problem.bounding = on(kBounding);
    // The limits are for the prediction.
    if (native_) {
      problem.goal.max_usd *= kNativeLimitSlack;
      problem.goal.max_iteration_s *= kNativeLimitSlack;
    }
    return problem;
  }

  SkeletonOutcome search_configuration(const Configuration& c, Pass pass, int max_stages, size_t beam) {
    ++result_.stats.configurations;
    pass = pass_of(c, pass);
    PassTables& tables = tables_of(c, pass);
    SkeletonProblem problem = skeleton_problem(tables, c, pass);
    problem.max_stages = max_stages;
    problem.beam = beam;
    const RealizeProblem form{*tables.costs, c.replicas, c.rounds, overhead_s_, problem.goal};
    const SkeletonOutcome outcome = search_skeletons(
        problem, [&] { return accepted_value(c); },
        [&](const Skeleton& skeleton) { realize_skeleton(form, skeleton, c); }, [&] { return expired(); });
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
      keep(*realized, c.costs->microbatch(), c.replicas);
    if (!exactly && !native_)
      shortlist_.add(form, std::move(*realized), goal_.value(skeleton.iteration_s, skeleton.usd));
  }

  void keep(const Realized& realized, int microbatch, int replicas) {
    const double value = goal_.value(realized.value.iteration_s, realized.value.usd);
    Plan plan = plan_of(context_, resources_, realized.layout, microbatch, replicas);
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
                         keep(better, form.costs.stage().microbatch(), form.replicas);
                       },
                       [&] { return expired(); });
  }

  void compose_pipelines() {
    const auto enough = [&] { return expired() || elapsed_s() > kComposeShare * options_.time_limit_s; };
    for (const auto& costs : tables_) {
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
    const std::vector<Plan> ranked = candidates_.ranked();
    for (size_t i = 0;
         i < ranked.size() && i < static_cast<size_t>(std::max(1, options_.top_k)) && !expired(); ++i) {
      const Plan better = improved(
          ranked[i], options_.space,
          [&](const Plan& plan) -> double {
            ++result_.stats.plans_scored;
            const Prediction p = simulate(context_, plan, options_.cost_model);
            const bool ok =
                p.fits && p.usd_per_iteration() <= goal_.max_usd && p.iteration_s <= goal_.max_iteration_s;
            return ok ? candidates_.value(p) : kNever;
          },
          [&] { return expired(); });
      candidates_.score(better, result_.rejected);
    }
  }

  void finish() {
    result_.candidates = candidates_.placed(std::max(1, options_.top_k), result_.rejected);
    result_.stats.complete = !timed_out_ && pass_complete_ && composed_;
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
  Candidates candidates_;
  double overhead_s_ = 0;
  std::vector<std::unique_ptr<StageCosts>> tables_;  // by microbatch
  std::map<Pass, std::map<const StageCosts*, PassTables>> pass_tables_;
  std::vector<Configuration> configurations_;  // in the order of search
  Shortlist shortlist_;
  double best_sum_ = kNever;
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
  return {kBestFirst, kBounding, kDominance, kEqualRounds, kShortFirst};
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
