#include "planner/search/native/native_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <tuple>

#include "planner/plan/feature_text.h"
#include "planner/search/native/anneal.h"
#include "planner/search/native/bound.h"
#include "planner/search/native/climb.h"
#include "planner/search/native/few_gpus.h"
#include "planner/search/native/gathering_plans.h"
#include "planner/search/native/placement.h"
#include "planner/search/native/savings.h"
#include "planner/search/native/seeds.h"
#include "planner/search/native/uniform_plans.h"
#include "planner/search/problem/candidates.h"
#include "planner/search/problem/previous_plans.h"

namespace sailor::native {
namespace {

// Context parallelism is not offered for shorter sequences, of which it seldom makes a plan faster.
constexpr int kLeastSplitSequence = 2048;
constexpr double kUsualEffort = 1;  // PlanOptions::effort

struct Effort {
  // Searches on small clusters are the most frequent, and should be instantaneous. The less effort, the
  // smaller the fraction of it for seeds and climbs before walks begin.
  struct Size {
    int gpus = std::numeric_limits<int>::max();  // up to
    double steps, steps_per_gpu = 0;
    bool few = false;  // few_gpus.h
    SeedOptions seeds = {};
    double climbing = 0.75;  // part of the effort that is spent when climbs end
    size_t climbs = 12;
    size_t placed = 0;  // plans whose placement is improved, in addition to the requested ones
  };
  Size sizes[4] = {
      {.gpus = 12,
       .steps = 1.05e7,
       .few = true,
       .seeds = {.one_pool = 0.08, .listing = 0.05, .unlike_stages = 0.1, .thorough = true},
       .climbing = 0.75,
       .climbs = 60,
       .placed = 40},
      {.gpus = 32,
       .steps = 1.5e7,
       .seeds = {.one_pool = 0.05, .listing = 0.05, .unlike_stages = 0.15, .side_by_side = 0.35},
       .climbing = 0.5,
       .placed = 12},
      {.gpus = 256, .steps = 3.2e7, .steps_per_gpu = 5e4},
      {.steps = 6.2e7, .steps_per_gpu = 1.15e5},
  };
  int counted_gpus = 1024;  // more do not increase the effort: planning is interactive
  // All parts of the search included; on slower machines the time limit ends them.
  double steps_per_s = 1e8;
  double from_previous = 0.25;  // part of the effort that replanning adds
  double split = 0.15;          // and the search for split backwards, from this many plans
  size_t split_from = 128;
  double unlike = 0.1;  // and that for microbatches of unlike sizes, from this many plans
  size_t unlike_from = 32;
  double from_limit = 0.5;  // and that for plans that are best by what is limited
  FewGpusOptions few_split{.sequences = 0.3, .pairs = 0.5};
  size_t listed = 4;                           // templates for a plan to show: some are the same plan
  PlacementOptions placing{.steps = 100'000};  // where that is of many plans
  double climbed = 1.4;                        // no further from the best than this factor
  size_t walks[3] = {8, 3, 1};                 // by round
  double walked = 1.3;                         // from no plan that is further from the best than this factor
};

PlanFeatures offered(const PlanOptions& options, const PlanningContext& context) {
  const FrameworkStyle& framework = context.framework;
  PlanFeatures out;
  for (const PlanFeature feature : options.allow)
    if (offers(options, feature)) out.insert(feature);
  if (framework.uniform_plans) {
    out.erase(PlanFeature::unlike_cuts);
    out.erase(PlanFeature::unlike_shares);
    out.erase(PlanFeature::unlike_microbatches);
    // Others have no such choice, or no tensor parallelism.
    if (framework.flags != FrameworkStyle::Flags::megatron) out.erase(PlanFeature::sequence_parallel);
  }
  if (framework.sequence_parallel) out.erase(PlanFeature::sequence_parallel);
  if (!framework.context_parallel || context.job.model.sequence < kLeastSplitSequence ||
      !out.contains(PlanFeature::sequence_parallel))
    out.erase(PlanFeature::context_parallel);
  if (!framework.may_recompute) out.erase(PlanFeature::recompute);
  if (!framework.split_backward) out.erase(PlanFeature::split_backward);
  if (!framework.offload || !framework.recompute_parts) out.erase(PlanFeature::offload);
  if (!framework.may_interleave) out.erase(PlanFeature::interleave);
  if (!framework.may_shard_optimizer) out.erase(PlanFeature::zero1);
  if (framework.uniform_plans || !framework.may_shard_optimizer) out.erase(PlanFeature::zero2);
  if (!out.contains(PlanFeature::zero2) || context.job.training.lora) out.erase(PlanFeature::zero3);
  if (!framework.hybrid_zero || (!out.contains(PlanFeature::zero1) && !shards_optimizer(framework.zero)))
    out.erase(PlanFeature::hybrid_zero);
  return out;
}

// May a stage have a TP group, or a context-parallel group, whose ranks split tokens?
bool may_split_tokens(const PlanningContext& context, const Resources& resources,
                      const PlanFeatures& offered) {
  return offered.contains(PlanFeature::sequence_parallel) && context.profiles.sizes.find({}) != nullptr &&
         std::any_of(resources.options.begin(), resources.options.end(),
                     [](const Option& option) { return option.shape.gpus() > 1; });
}

enum class Extent {
  bounded,   // everything, and a bound
  complete,  // everything
  previous,  // from previous plans only
};

class NativeSearch {
 public:
  NativeSearch(const PlanningContext& context, const PlanOptions& options, Extent extent,
               const Savings& savings = {})
      : context_(context),
        options_(options),
        extent_(extent),
        all_offered_(offered(options, context)),
        offered_(limited(all_offered_, savings.shards)),
        deadline_(options.time_limit_s, options.stop),
        resources_(usable_resources(context, options, result_.rejected, savings.context)),
        space_(context, resources_, savings.split, false, savings.offload),
        scorer_(space_, goal_of(context.job), steps(), deadline_),
        groups_states_(savings.groups) {
    if (offered_.contains(PlanFeature::recompute)) scorer_.recompute_as_needed();
    if (groups_states_ && !context.framework.uniform_plans) scorer_.group_states();
  }

  SearchResult run() {
    if (context_.framework.uniform_plans) {
      result_.stats.configurations = score_uniform_plans(scorer_, offered_, groups_states_);
    } else if (!space_.options.empty()) {
      start_from_previous();
      if (extent_ != Extent::previous) start_from_nothing();
      if (offered_.contains(PlanFeature::split_backward)) split_backwards();
      if (all_offered_.contains(PlanFeature::unlike_microbatches)) vary_microbatches();
    }
    finish();
    if (extent_ != Extent::previous && !context_.framework.uniform_plans) keep_previous();
    return std::move(result_);
  }

  Savings possible_savings() const {
    const Zero most = space_.gpus() > 1 ? zero_degrees(all_offered_).back() : Zero::none;
    return {may_split() ? TokenSplit::all : TokenSplit::none, std::max(most, Zero::optimizer),
            may_split_context(), may_offload(), may_group()};
  }

  // On a current machine.
  double effort_s() const { return static_cast<double>(steps()) / effort_.steps_per_s; }

 private:
  static PlanFeatures limited(PlanFeatures features, Zero most) {
    if (most < Zero::gradients) features.erase(PlanFeature::zero2);
    if (most < Zero::parameters) features.erase(PlanFeature::zero3);
    features.erase(PlanFeature::unlike_microbatches);  // has a search of its own
    return features;
  }

  bool may_split() const { return may_split_tokens(context_, resources_, offered_); }
  bool may_split_context() const {
    return offered_.contains(PlanFeature::context_parallel) &&
           std::any_of(resources_.pools.begin(), resources_.pools.end(),
                       [](const Pool& pool) { return pool.free_by_node.front() > 1; });
  }

  // Of fewer GPUs, or on one node, groups share nothing that is worth it.
  bool may_group() const {
    return all_offered_.contains(PlanFeature::hybrid_zero) && space_.nodes.size() > 1 && space_.gpus() > 3;
  }

  bool may_offload() const {
    return offered_.contains(PlanFeature::offload) &&
           std::any_of(space_.options.begin(), space_.options.end(),
                       [&](const SpaceOption& option) { return space_.kinds[option.kind].offload_s > 0; });
  }

  const Effort::Size& size() const {
    const Effort::Size* size = effort_.sizes;
    while (space_.gpus() > size->gpus) ++size;
    return *size;
  }

  int64_t steps() const {
    const Effort::Size& of = size();
    return static_cast<int64_t>(std::min(
        options_.effort * (of.steps + of.steps_per_gpu * std::min(space_.gpus(), effort_.counted_gpus)),
        effort_.steps_per_s * options_.effort_limit_s));
  }

  // A search of its own from previous plans: what follows is what a search from nothing does, so that the
  // result is no worse than its.
  void start_from_previous() {
    if (options_.previous.empty()) return;
    previous_.emplace(space_, goal_of(context_.job),
                      static_cast<int64_t>(effort_.from_previous * static_cast<double>(steps())), deadline_);
    if (scorer_.recomputes_as_needed()) previous_->recompute_as_needed();
    if (groups_states_) previous_->group_states();
    for (const Plan& previous : options_.previous)
      for (Plan& plan : still_possible(previous, context_.job, resources_.usable)) {
        PlanTemplate of;
        if (!limit_features(plan, all_offered_) || !template_of(space_, plan, of)) continue;
        for (const int block : blocks_of(space_, of)) {
          of.block = block;
          for (const Fill fill : {Fill::packed, Fill::even, Fill::together}) {
            of.fill = fill;
            previous_->score(of);
          }
        }
      }
    if (space_.most_copies > 1 || space_.may_offload) score_gathering_plans(*previous_, offered_);
    // Other stages may be better with split tokens.
    if (size().few && space_.split == TokenSplit::all)
      score_few_gpus(*previous_, offered_, effort_.few_split);
    if (space_.most_copies == 1 && !space_.may_offload && offered_.contains(PlanFeature::zero3))
      score_gathering_plans(*previous_, offered_);
    for (auto& [value, of] : previous_->ranked(3)) climb(*previous_, offered_, of, value);
    std::mt19937_64 random(1);
    for (auto& [value, of] : previous_->ranked(1)) {
      auto [reached, at] = anneal(*previous_, offered_, of, value, previous_->most_steps(), random, {});
      climb(*previous_, offered_, at, reached);
    }
  }

  void start_from_nothing() {
    const Effort::Size& size = this->size();
    if (size.few) score_few_gpus(scorer_, offered_, {});
    Seeds seeds(scorer_, offered_, size.seeds);
    seeds.equal_pipelines();
    seeds.side_by_side();
    result_.stats.configurations = seeds.shapes();
    climb_from(scorer_.ranked_by_pools());
    climb_from(scorer_.ranked(size.climbs));
    anneal_and_climb();
  }

  // Near the best plans without: so that those with split backwards are no worse.
  void split_backwards() {
    split_space_.emplace(context_, resources_, space_.split, true, space_.may_offload);
    Scorer& scorer =
        split_.emplace(*split_space_, goal_of(context_.job),
                       static_cast<int64_t>(effort_.split * static_cast<double>(steps())), deadline_);
    if (scorer_.recomputes_as_needed()) scorer.recompute_as_needed();
    for (const auto& [value, of] : ranked(effort_.split_from)) scorer.score(of);
    for (auto& [value, of] : scorer.ranked(6)) climb(scorer, offered_, of, value);
    std::mt19937_64 random(1);
    for (auto& [value, of] : scorer.ranked(1)) {
      auto [reached, at] = anneal(scorer, offered_, of, value, scorer.most_steps(), random, {});
      climb(scorer, offered_, at, reached);
    }
  }

  // Near the best plans with pipelines of several classes: so that those with microbatches of unlike sizes
  // are no worse.
  void vary_microbatches() {
    const auto known = ranked(effort_.unlike_from);
    if (!known.empty()) alike_ = known.front().first;
    Scorer& scorer =
        unlike_.emplace(split_space_ ? *split_space_ : space_, goal_of(context_.job),
                        static_cast<int64_t>(effort_.unlike * static_cast<double>(steps())), deadline_);
    if (scorer_.recomputes_as_needed()) scorer.recompute_as_needed();
    for (const auto& from : {known, scorer_.closest(effort_.unlike_from)})
      for (const auto& [value, of] : from)
        if (of.classes.size() > 1) scorer.score(of);
    PlanFeatures features = offered_;
    features.insert(PlanFeature::unlike_microbatches);
    for (const auto& from : {scorer.ranked(6), scorer.closest(2)})
      for (auto [value, of] : from) climb(scorer, features, of, value);
  }

  // The best of all these searches.
  std::vector<std::pair<double, PlanTemplate>> ranked(size_t most) const {
    std::vector<std::pair<double, PlanTemplate>> out = scorer_.ranked(most);
    for (const std::optional<Scorer>* other : {&previous_, &split_, &unlike_})
      if (*other)
        for (auto& entry : (*other)->ranked(most))
          if (other != &unlike_ || gains_by_sizes(entry)) out.push_back(std::move(entry));
    std::stable_sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    out.resize(std::min(out.size(), most));
    return out;
  }

  // Has it microbatches of unlike sizes, and are they worth it?
  bool gains_by_sizes(const std::pair<double, PlanTemplate>& entry) const {
    return has_unlike_microbatches(entry.second) && kIdleSaving * entry.first <= alike_;
  }

  // From templates with their values, best first, while they are close to the best.
  void climb_from(std::vector<std::pair<double, PlanTemplate>> ranked) {
    for (auto& [value, of] : ranked) {
      if (value > effort_.climbed * scorer_.best() || scorer_.spent()) break;
      if (static_cast<double>(scorer_.steps()) > size().climbing * static_cast<double>(scorer_.most_steps()))
        break;
      climb(scorer_, offered_, of, value);
    }
  }

  // A tournament: walks from many different plans, longer ones from where the best of these came to, and at
  // last one from the best. Each ends with a climb.
  void anneal_and_climb() {
    std::mt19937_64 random(1);
    std::vector<std::pair<double, PlanTemplate>> field = scorer_.ranked_by_pools();
    field.resize(std::min(field.size(), effort_.walks[0] / 2));
    for (auto& entry : scorer_.ranked(effort_.walks[0]))
      if (field.size() < effort_.walks[0]) field.push_back(std::move(entry));
    std::erase_if(field, [&](const auto& entry) { return entry.first > effort_.walked * scorer_.best(); });
    if (field.empty()) field = scorer_.closest(1);
    for (size_t round = 0; round < std::size(effort_.walks); ++round) {
      std::stable_sort(field.begin(), field.end(),
                       [](const auto& a, const auto& b) { return a.first < b.first; });
      field.resize(std::min(field.size(), effort_.walks[round]));
      const auto rounds_left = static_cast<double>(std::size(effort_.walks) - round);
      AnnealOptions options;
      options.warm *= rounds_left / static_cast<double>(std::size(effort_.walks));
      for (size_t walk = 0; walk < field.size() && !scorer_.spent(); ++walk) {
        auto& [value, at] = field[walk];
        const auto left = static_cast<double>(scorer_.most_steps() - scorer_.steps());
        const auto length = left / rounds_left / static_cast<double>(field.size() - walk);
        std::tie(value, at) = anneal(scorer_, offered_, at, value,
                                     scorer_.steps() + static_cast<int64_t>(length), random, options);
        value = climb(scorer_, offered_, at, value);
      }
    }
  }

  void find_bound() {
    double known_s = kNever;
    for (const Candidate& candidate : result_.candidates)
      if (!candidate.only_shown) known_s = std::min(known_s, candidate.prediction.iteration_s);
    std::optional<Space> offloading;
    if (may_offload()) offloading.emplace(context_, resources_, TokenSplit::none, false, true);
    Bound bound = least_possible(offloading ? *offloading : space_, all_offered_, known_s, deadline_);
    if (may_split() || may_split_context()) {
      std::map<std::string, int64_t> rejected;
      const Resources all = usable_resources(context_, options_, rejected, may_split_context());
      const Space split(context_, all, TokenSplit::all, false, may_offload());
      // What is found is below what is known, by up to 1 %.
      const Bound of_split = least_possible(split, all_offered_, 1.02 * bound.iteration_s, deadline_);
      bound.iteration_s = std::min(bound.iteration_s, of_split.iteration_s);
      bound.charge = std::min(bound.charge, of_split.charge);
    }
    if (bound.iteration_s > 0 && std::isfinite(bound.iteration_s))
      result_.bound_iteration_s = bound.iteration_s;
    if (bound.charge > 0 && std::isfinite(bound.charge))
      result_.bound[scorer_.goal().followed()] = bound.charge;
  }

  // Without recomputation that gains nothing: walks take what is as good. Where stages recompute as little as
  // possible none does.
  PlanTemplate tidy(PlanTemplate of, double value) {
    if (context_.framework.uniform_plans || context_.framework.recompute_parts) return of;
    for (size_t c = 0; c < of.classes.size(); ++c)
      for (size_t i = 0; i < of.classes[c].stages.size(); ++i) {
        if (of.classes[c].stages[i].recompute == Recompute::none) continue;
        PlanTemplate next = of;
        next.classes[c].stages[i].recompute = Recompute::none;
        if (scorer_.score(next) <= value) of = std::move(next);
      }
    return of;
  }

  void finish() {
    const auto wanted = static_cast<size_t>(std::max(1, options_.top_k));
    const size_t placed = extent_ == Extent::previous ? wanted : size().placed;
    const size_t kept = std::min(wanted, kCandidates), templates = std::max(effort_.listed * kept, placed);
    size_t at = 0;
    std::set<std::string> structures;
    for (const auto& [value, of] : ranked(std::max(effort_.listed * wanted, placed))) {
      CompactPlan compact;
      if (result_.candidates.size() >= std::max(wanted, placed)) break;
      const bool only_shown = at++ >= templates || result_.candidates.size() >= std::max(kept, placed);
      if (!assign(space_, tidy(of, value), compact)) continue;
      improve_placement(space_, scorer_.model(), scorer_.goal(), compact,
                        placed > 0 ? effort_.placing : PlacementOptions{});
      use_fewer_nodes(space_, scorer_.model(), scorer_.goal(), compact);
      Candidate candidate{plan_of(space_, compact), {}, only_shown};
      if (!structures.insert(structure_of(candidate.plan)).second) continue;
      candidate.prediction = simulate(context_, candidate.plan, CostModel::native);
      if (!candidate.prediction.fits) continue;
      result_.candidates.push_back(std::move(candidate));
    }
    keep_best(result_.candidates, better_by(scorer_.goal()), options_.top_k);
    if (extent_ == Extent::bounded && !space_.options.empty()) find_bound();
    for (const auto& [reason, count] : scorer_.rejected) result_.rejected[reason] += count;
    result_.cost_model = CostModel::native;
    result_.stats.plans_scored = scorer_.scored();
    result_.stats.complete = !deadline_.timed_out();
    if (!result_.candidates.empty()) {
      result_.status = SearchStatus::found;
    } else {
      result_.status = deadline_.timed_out() ? SearchStatus::time_limit : SearchStatus::infeasible;
      if (deadline_.timed_out())
        result_.reason =
            fmt::format("no plan was found within {:.3g} s: allow more time", options_.time_limit_s);
    }
    result_.stats.search_s = deadline_.elapsed_s();
  }

  // A template has the stages of a plan, but not the node of each: previous plans that can run as they are
  // stay candidates, placed as before.
  void keep_previous() {
    std::vector<Candidate> kept;
    for (const Plan& previous : options_.previous) {
      if (!still_complete(previous, context_.job, all_offered_, resources_.usable)) continue;
      Candidate candidate{previous, {}};
      candidate.plan.prediction.reset();
      try {
        candidate.prediction = simulate(context_, candidate.plan, CostModel::native);
      } catch (const InputError&) {  // a shape without a profile
        continue;
      }
      if (candidate.prediction.fits &&
          std::isfinite(scorer_.goal().allowed_value(candidate.prediction.figures())))
        kept.push_back(std::move(candidate));
    }
    if (kept.empty()) return;
    result_.status = SearchStatus::found;
    result_.reason.clear();
    add_candidates(result_, std::move(kept), scorer_.goal(), options_.top_k);
  }

  const PlanningContext& context_;
  const PlanOptions& options_;
  const Extent extent_;
  const PlanFeatures all_offered_, offered_;  // also by the search of savings; here
  const Effort effort_;
  Deadline deadline_;
  SearchResult result_;
  const Resources resources_;
  const Space space_;
  Scorer scorer_;
  const bool groups_states_;
  std::optional<Scorer> previous_;  // of the search from previous plans
  std::optional<Space> split_space_;
  std::optional<Scorer> split_;   // of that with split backwards
  std::optional<Scorer> unlike_;  // of that with microbatches of unlike sizes
  double alike_ = kNever;         // the best value without
};

// The nodes that a plan uses.
Snapshot used_part(const Snapshot& snapshot, const Plan& plan) {
  std::set<std::string> names;
  for (const PlanPipeline& pipeline : plan.pipelines)
    for (const PlanStage& stage : pipeline.stages) names.insert(stage.node);
  Snapshot out = snapshot;
  std::erase_if(out.nodes, [&](const SnapshotNode& node) { return !names.contains(node.name); });
  return out;
}

// Nodes that the best plan leaves unused took a part of the effort, most of it if their GPUs are of other
// types. Its own nodes are searched once more, alone.
void search_used_nodes(const PlanningContext& context, PlanOptions options, double effort_s,
                       SearchResult& result) {
  const Snapshot used = used_part(context.snapshot, result.candidates[0].plan);
  options.time_limit_s -= result.stats.search_s;
  options.effort_limit_s -= effort_s;
  if (used.nodes.size() == context.snapshot.nodes.size() || options.time_limit_s <= 0 ||
      options.effort_limit_s <= 0)
    return;
  options.previous.clear();
  const PlanningContext alone{context.job,      used, context.catalog, context.profiles, context.framework,
                              context.precision};
  SearchResult again = NativeSearch(alone, options, Extent::complete).run();
  add_candidates(result, std::move(again.candidates), goal_of(context.job), options.top_k);
  result.stats += again.stats;
}

// With the searches that follow from its result, but that from limits. Adds the effort to `effort_s`.
SearchResult search_toward(const PlanningContext& context, const PlanOptions& options, Extent extent,
                           double& effort_s) {
  NativeSearch first(context, options, extent);
  SearchResult result = first.run();
  effort_s += first.effort_s();
  if (result.status == SearchStatus::found && !options.any_plan)
    search_used_nodes(context, options, first.effort_s(), result);
  const SavingSearch search_with = [&](const PlanOptions& with, const Savings& savings, bool near_known) {
    return NativeSearch(context, with, near_known ? Extent::previous : Extent::complete, savings).run();
  };
  search_savings(context, options, first.possible_savings(), Effort().from_previous, search_with, result);
  return result;
}

// Where a limit refused plans: those that are best by what it limits, and the best within it near them.
void search_from_limits(const PlanningContext& context, PlanOptions options, double& effort_s,
                        SearchResult& result) {
  const Goal goal = goal_of(context.job);
  const double time_limit_s = options.time_limit_s;
  options.effort *= Effort().from_limit;
  options.effort_limit_s *= Effort().from_limit;
  for (const auto& [limited, refused] : goal.limits()) {
    options.time_limit_s = time_limit_s - result.stats.search_s;
    if (limited == goal.objective || !result.rejected.contains(refused) || options.time_limit_s <= 0)
      continue;
    JobSpec job = context.job;
    job.objective = limited;
    if (limited.expense())
      job.constraints.most[*limited.expense()].reset();
    else
      job.constraints.min_iterations_per_s.reset();
    const PlanningContext by_limit{
        job, context.snapshot, context.catalog, context.profiles, context.framework, context.precision};
    options.previous.clear();
    SearchResult found = search_toward(by_limit, options, Extent::complete, effort_s);
    result.stats += found.stats;
    std::erase_if(found.candidates, [&](const Candidate& candidate) {
      return std::isinf(goal.allowed_value(candidate.prediction.figures()));
    });
    if (found.candidates.empty()) continue;
    for (const Candidate& candidate : found.candidates) options.previous.push_back(candidate.plan);
    add_candidates(result, std::move(found.candidates), goal, options.top_k);
    found = NativeSearch(context, options, Extent::previous).run();
    result.stats += found.stats;
    add_candidates(result, std::move(found.candidates), goal, options.top_k);
    result.status = SearchStatus::found;
    result.reason.clear();
  }
}

// With all searches that follow from its result. Adds the effort to `effort_s`.
SearchResult search_once(const PlanningContext& context, const PlanOptions& options, Extent extent,
                         double& effort_s) {
  SearchResult result = search_toward(context, options, extent, effort_s);
  // Plans that are known already are starting points, too.
  const bool enough = options.any_plan || !options.previous.empty();
  if (result.status != SearchStatus::found || !enough) search_from_limits(context, options, effort_s, result);
  return result;
}

// Longer walks end elsewhere, and sometimes at worse plans: the search with the usual effort comes first, so
// that the result is never worse than its.
void search_more(const PlanningContext& context, PlanOptions options, double effort_s, SearchResult& result) {
  options.effort -= kUsualEffort;
  options.effort_limit_s -= effort_s;
  options.time_limit_s -= result.stats.search_s;
  if (options.effort <= 0 || options.effort_limit_s <= 0 || options.time_limit_s <= 0) return;
  SearchResult more = search_once(context, options, Extent::complete, effort_s);
  result.stats += more.stats;
  if (more.status != SearchStatus::found) return;
  result.status = more.status;
  result.reason.clear();
  add_candidates(result, std::move(more.candidates), goal_of(context.job), options.top_k);
}

}  // namespace

SearchResult search(const PlanningContext& context, const PlanOptions& options) {
  PlanOptions usual = options;
  usual.effort = std::min(kUsualEffort, options.effort);
  double effort_s = 0;
  SearchResult result = search_once(context, usual, Extent::bounded, effort_s);
  search_more(context, options, effort_s, result);
  if (result.status == SearchStatus::found) fill_in_predictions(result);
  return result;
}

}  // namespace sailor::native
