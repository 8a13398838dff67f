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
#include "planner/search/cut_search.h"
#include "planner/search/explain.h"
#include "planner/search/improve.h"
#include "planner/search/zones.h"
#include "planner/spec/error.h"

namespace sailor {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
// The native timeline is not a sum: cuts within this factor of the best sum are predicted exactly before one
// is chosen.
constexpr double kNativeSlack = 1.05;
// Up to this many ways to spread the replicas of a stage over options, all are tried.
constexpr int kExhaustiveMixes = 64;
constexpr int kAnyStages = 1 << 20;

const char* const kDominance = "dominance";
const char* const kBounding = "bounding";
const char* const kEqualRounds = "equal-rounds";
const char* const kBestFirst = "best-first";
const char* const kShortFirst = "short-first";
const char* const kMergedRegions = "merged-regions";

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
    // Zones of a region taken as one first: few ways, and good plans to bound the exact search with.
    if (on(kMergedRegions)) search_merged_regions();
    const Configurations exact = configurations(resources_, true);
    search_all(exact, nullptr);
    // Whatever time is left goes to what the trainer can run beyond one cut and one D.
    if (native_ && options_.space == SearchSpace::full) compose_pipelines(exact);
    if (native_) improve_best();
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
  double accepted_value() const { return native_ ? best_sum_ * kNativeSlack : best_sum_; }

  struct Configurations {
    const Resources* resources;
    std::vector<std::unique_ptr<StageCosts>> tables;  // by microbatch
    std::vector<Configuration> list;                  // in the order of search
  };

  // `exact`: these are the real resources, so that bounds and rejections count.
  Configurations configurations(const Resources& resources, bool exact) {
    Configurations out{&resources, {}, {}};
    int gpus = 0;
    for (const Pool& pool : resources.pools) gpus += pool.gpus();
    double bound_s = kNever, bound_usd = kNever;
    const auto reject = [&](const char* reason) {
      if (exact) ++result_.rejected[reason];
    };
    for (int microbatch : microbatch_sizes(context_, resources)) {
      out.tables.push_back(
          std::make_unique<StageCosts>(context_, resources, options_.cost_model, microbatch));
      const StageCosts& costs = *out.tables.back();
      const WorkBound bound(costs, resources);
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
        if (!bound.memory_suffices(replicas, costs.layers(), 1, resources.capacity)) {
          reject("memory");
          continue;
        }
        if (c.bound_s > goal_.max_iteration_s) {
          reject("throughput floor");
          continue;
        }
        if (c.bound_usd > goal_.max_usd) {
          reject("budget");
          continue;
        }
        bound_s = std::min(bound_s, c.bound_s);
        bound_usd = std::min(bound_usd, c.bound_usd);
        // As many rounds with more replicas: more to synchronise, more GPUs, nothing gained.
        if (same && on(kEqualRounds)) continue;
        out.list.push_back(c);
      }
    }
    if (exact && std::isfinite(bound_s)) result_.bound_iteration_s = bound_s;
    if (exact && std::isfinite(bound_usd)) result_.bound_usd_per_iteration = bound_usd;
    if (on(kBestFirst))
      std::stable_sort(out.list.begin(), out.list.end(), [&](const Configuration& a, const Configuration& b) {
        return value_bound(a) < value_bound(b);
      });
    return out;
  }

  // Makes a plan of a cut; nullopt when there is none. Empty: replica j of every stage is in pipeline j.
  using PlanMaker = std::function<std::optional<Plan>(const Cut&, const Configuration&)>;

  void search_merged_regions() {
    const Resources merged = merged_regions(context_, options_, resources_);
    if (merged.pools.size() == resources_.pools.size()) return;
    search_all(configurations(merged, false), [&](const Cut& cut, const Configuration& c) {
      return plan_over_zones(context_, merged, resources_, cut, c.costs->microbatch(), c.replicas);
    });
    best_sum_ = candidates_.best();  // what the plans really take, not what merged zones add up to
    cut_short_ = false;              // a hint; only the exact search decides what is complete
  }

  // Short pipelines first: they are cheap to search and usually win, and what they reach bounds the rest.
  void search_all(const Configurations& configurations, const PlanMaker& maker) {
    std::vector<int> depths{kAnyStages};
    if (maker)
      depths = {2, 4};  // only hints
    else if (on(kShortFirst))
      depths = {2, 4, kAnyStages};
    for (int max_stages : depths)
      for (const Configuration& c : configurations.list) {
        if (expired()) return;
        if (on(kBounding) && value_bound(c) >= accepted_value()) {
          if (on(kBestFirst)) break;
          continue;
        }
        search_configuration(*configurations.resources, c, max_stages, maker);
      }
  }

  void search_configuration(const Resources& resources, const Configuration& c, int max_stages,
                            const PlanMaker& maker) {
    ++result_.stats.configurations;
    bool exhaustive = false;
    const std::vector<ReplicaMix> mixes =
        replica_mixes(*c.costs, resources, c.replicas, kExhaustiveMixes, &exhaustive);
    if (mixes.empty()) {
      if (!maker && max_stages == kAnyStages) ++result_.rejected["GPUs"];
      return;
    }
    CutProblem problem{*c.costs,    resources, mixes,          c.replicas,   c.rounds,
                       overhead_s_, goal_,     on(kDominance), on(kBounding)};
    problem.max_stages = max_stages;
    const bool sums_are_exact = !native_ && !maker;
    if (!sums_are_exact) {
      // The limits are for the prediction; a sum may be far from it where pipelines have unequal shares.
      problem.goal.max_usd = problem.goal.max_iteration_s = kNever;
    }
    const CutOutcome outcome = search_cuts(
        problem, [&] { return accepted_value(); },
        [&](const Cut& cut) {
          ++result_.stats.plans_scored;
          const double value = cut.value(goal_);
          std::optional<Plan> plan =
              maker ? maker(cut, c) : plan_of(context_, resources, cut, c.costs->microbatch(), c.replicas);
          if (!plan) return;
          if (sums_are_exact)
            candidates_.keep(std::move(*plan), value);
          else if (!candidates_.score(*plan, result_.rejected))
            return;
          best_sum_ = std::min(best_sum_, value);
        },
        [&] { return expired(); });
    if ((!outcome.complete || !exhaustive) && max_stages == kAnyStages) cut_short_ = true;
    if (maker || max_stages != kAnyStages) return;
    if (outcome.out_of_memory) ++result_.rejected["memory"];
    if (outcome.over_budget) ++result_.rejected["budget"];
    if (outcome.too_slow) ++result_.rejected["throughput floor"];
  }

  void compose_pipelines(const Configurations& exact) {
    for (const auto& costs : exact.tables) {
      if (expired()) break;
      ++result_.stats.configurations;
      for (const Plan& plan : composed_plans(context_, resources_, *costs, [&] { return expired(); })) {
        ++result_.stats.plans_scored;
        candidates_.score(plan, result_.rejected);
      }
    }
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
    result_.stats.complete = !timed_out_ && !cut_short_;
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

  const PlanningContext& context_;
  const PlanOptions& options_;
  const std::chrono::steady_clock::time_point started_;
  const bool native_;
  SearchResult result_;
  Resources resources_;
  Goal goal_;
  Candidates candidates_;
  double overhead_s_ = 0;
  double best_sum_ = kNever;
  bool timed_out_ = false;
  bool cut_short_ = false;
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
  return {kBestFirst, kBounding, kDominance, kEqualRounds, kMergedRegions, kShortFirst};
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
