#include "planner/search/native/savings.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "planner/plan/feature_text.h"
#include "planner/plan/validate.h"
#include "planner/search/problem/candidates.h"
#include "planner/simulator/simulate.h"

namespace sailor::native {
namespace {

// As kIdleSaving, for ZeRO-3, whose gain rests on links in every microbatch, and for offloading, whose gain
// rests on the hosts.
constexpr double kIdleGathers = 1.01, kIdleOffload = 1.01;
// Parts of the effort: of a search near other plans, and for other frameworks.
constexpr double kSavingEffort = 0.15, kUniformEffort = 0.5;
constexpr double kFull = 0.85;        // of a GPU's memory
constexpr double kOffloadEffort = 3;  // of the search with offloading where there is no plan without
constexpr int kSavingCandidates = 2;  // of a search near known plans

// The plan without savings that gain next to nothing.
Candidate without_idle_savings(const PlanningContext& context, Candidate candidate) {
  const Goal goal = goal_of(context.job);
  const double most = (candidate.plan.zero >= Zero::parameters ? kIdleGathers : kIdleSaving) *
                      goal.value(candidate.prediction.figures());
  const auto take = [&](Plan plan) {
    Prediction prediction = simulate(context, plan, CostModel::native);
    if (prediction.fits && goal.allowed_value(prediction.figures()) <= most)
      candidate = {std::move(plan), std::move(prediction)};
  };
  if (candidate.plan.sequence_parallel && !has_context_parallelism(candidate.plan)) {
    Plan whole = candidate.plan;
    whole.sequence_parallel = false;
    take(std::move(whole));
  }
  for (const Zero zero : {Zero::gradients, Zero::optimizer}) {
    if (candidate.plan.zero <= zero || context.framework.zero > zero) continue;
    Plan whole = candidate.plan;
    whole.zero = zero;
    take(std::move(whole));
  }
  if (candidate.plan.zero_group > 0) {
    Plan shared = candidate.plan;
    shared.zero_group = 0;
    if (can_sum_in_one_order(shared)) take(std::move(shared));
  }
  // What the framework shards in any case only groups need to name.
  if (candidate.plan.zero_group == 0 && candidate.plan.zero <= context.framework.zero)
    candidate.plan.zero = Zero::none;
  return candidate;
}

// Plans with these savings: near the best ones that are known, or, where there are none, all of them. Returns
// whether there is a better plan now; none is lost to one that is not better.
bool search_savings_once(const PlanningContext& context, PlanOptions options, const Savings& savings,
                         double from_previous, const SavingSearch& search_with, SearchResult& result) {
  const bool found = result.status == SearchStatus::found;
  const int wanted = options.top_k;
  options.time_limit_s -= result.stats.search_s;
  if (options.time_limit_s <= 0) return false;
  if (found) {
    const double part = context.framework.uniform_plans ? kUniformEffort : kSavingEffort / from_previous;
    options.effort *= part;
    options.effort_limit_s *= part;
    const auto may_start = [&](const Plan& plan) {
      return savings.shards > Zero::optimizer || savings.context || savings.offload || savings.groups ||
             has_tensor_parallelism(plan);
    };
    std::erase_if(options.previous, [&](const Plan& plan) {
      return !plan.sequence_parallel && plan.zero < Zero::gradients && plan.zero_group == 0;
    });
    for (size_t i = 0; i < result.candidates.size() && !result.candidates[i].only_shown; ++i)
      if (i == 0 || may_start(result.candidates[i].plan))
        options.previous.push_back(result.candidates[i].plan);
    options.top_k = std::min(options.top_k, kSavingCandidates);
  }
  SearchResult saving = search_with(options, savings, found);
  result.stats += saving.stats;
  if (saving.status != SearchStatus::found) return false;
  if (!found) {
    result.status = saving.status;
    result.reason.clear();
  }
  for (Candidate& candidate : saving.candidates)
    candidate = without_idle_savings(context, std::move(candidate));
  const Goal goal = goal_of(context.job);
  const auto best = [&] {
    return result.candidates.empty() ? kNever : goal.value(result.candidates[0].prediction.figures());
  };
  const double before = best();
  if (savings.offload && !result.candidates.empty() && !offloads(result.candidates[0].plan))
    std::erase_if(saving.candidates, [&](const Candidate& candidate) {
      return offloads(candidate.plan) &&
             kIdleOffload * goal.allowed_value(candidate.prediction.figures()) > before;
    });
  add_candidates(result, std::move(saving.candidates), goal, wanted);
  return best() < before;
}

// Does it split layers, or take time, for lack of memory? Or perhaps cut them unevenly, because a GPU is
// full?
bool lacks_memory(const Candidate& candidate) {
  if (candidate.only_shown) return false;
  const auto full = [](const StagePrediction& stage) {
    return static_cast<double>(stage.memory.total()) > kFull * static_cast<double>(stage.capacity_bytes);
  };
  return has_tensor_parallelism(candidate.plan) || candidate.plan.zero > Zero::optimizer ||
         !recomputing_stages(candidate.plan).empty() ||
         std::ranges::any_of(candidate.prediction.stages, full);
}

}  // namespace

// Each saving alone, so that no other one makes it worse; where one of them gains, all together. Where there
// is no plan, offloading first, and all others with it; and without it all at once, but parameters are shared
// only when nothing else helps. Last, with offloading, with context parallelism, and with groups that share
// states, what may gain by it.
void search_savings(const PlanningContext& context, const PlanOptions& options, const Savings& possible,
                    double from_previous, const SavingSearch& search_with, SearchResult& result) {
  const auto search = [&](const Savings& savings) {
    if (options.any_plan && result.status == SearchStatus::found) return false;
    return search_savings_once(context, options, savings, from_previous, search_with, result);
  };
  Savings all = possible;
  all.context = all.offload = all.groups = false;
  if (result.status != SearchStatus::found && possible.offload) {
    all.offload = true;
    // Most of what is looked at has too little memory, which takes little time to see.
    PlanOptions longer = options;
    longer.effort *= kOffloadEffort;
    search_savings_once(context, longer, {.offload = true}, from_previous, search_with, result);
  }
  if (result.status != SearchStatus::found) {
    Savings without_gathers = all;
    without_gathers.shards = std::min(possible.shards, Zero::gradients);
    if (without_gathers.any()) search(without_gathers);
    if (all.shards > Zero::gradients) search(all);
  } else {
    std::vector<Savings> each;
    if (possible.split == TokenSplit::all) each.push_back({.split = TokenSplit::all, .offload = all.offload});
    for (const Zero degree : {Zero::gradients, Zero::parameters})
      if (degree <= possible.shards) each.push_back({.shards = degree, .offload = all.offload});
    bool gains = false;
    for (const Savings& savings : each) gains = search(savings) || gains;
    if (gains && each.size() > 1 && possible.split == TokenSplit::all) search(all);
  }
  const auto may_gain = [&] {
    return result.candidates.empty() ||
           std::any_of(result.candidates.begin(), result.candidates.end(), lacks_memory);
  };
  if (possible.offload && !all.offload && may_gain()) {
    all.offload = true;
    all.offload = search(all);
  }
  if (possible.context && may_gain()) {
    all.split = TokenSplit::all;
    all.context = true;
    search(all);
  }
  const auto shards = [&](const Candidate& candidate) {
    return shards_optimizer(std::max(candidate.plan.zero, context.framework.zero));
  };
  if (possible.groups && result.status == SearchStatus::found &&
      (std::ranges::any_of(result.candidates, shards) || may_gain())) {
    const Plan& best = result.candidates.front().plan;
    search({.split = best.sequence_parallel ? TokenSplit::all : TokenSplit::none,
            .shards = best.zero > Zero::optimizer ? possible.shards : Zero::optimizer,
            .groups = true});
  }
}

}  // namespace sailor::native
