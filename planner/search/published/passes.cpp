#include "planner/search/published/passes.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "planner/search/branch_and_bound/branch_and_bound.h"
#include "planner/search/problem/goal.h"
#include "planner/search/published/iterative_deepening.h"

namespace sailor {
namespace {

// More placement classes than that and partial pipelines are too many to list.
constexpr int kWideClasses = 64;

void search_by_deepening(SearchState& state, Pass pass) {
  Deepening problem;
  for (const Configuration& c : state.configurations) problem.bounds.push_back(state.value_bound(c));
  problem.best = [&] { return state.best_sum; };
  problem.limited = std::isfinite(state.goal.max_charge()) || std::isfinite(state.goal.max_iteration_s);
  problem.trusted = !state.options.previous.empty() && pass != Pass::exact && std::isfinite(state.best_sum);
  problem.search = [&](size_t i, double target, double searched) {
    return state
        .search_configuration(state.configurations[i], pass, kAnyStages, std::min(target, state.best_sum),
                              searched)
        .complete;
  };
  problem.expired = [&] { return state.expired(); };
  const Deepened done = deepen(problem);
  state.pass_complete = done.complete;
  state.open_value = std::min(state.open_value, done.open_value);
}

bool is_wide(SearchState& state, Pass pass) {
  return !state.goal.objective.expense() && pass != Pass::exact && !state.configurations.empty() &&
         state.tables_of(state.configurations.front(), pass).costs->size() > kWideClasses;
}

void search_by_branch_and_bound(SearchState& state) {
  std::vector<BranchConfiguration> boxes;
  std::vector<const Configuration*> of;
  for (const Configuration& c : state.configurations) {
    if (state.worse(c)) continue;
    boxes.push_back({state.tables_of(c, Pass::zoned).costs.get(), c.replicas, c.rounds, c.bound_s});
    of.push_back(&c);
  }
  const BranchOutcome outcome = branch_and_bound(
      boxes, [&] { return state.best_sum; },
      [&](const BranchConfiguration& box, const PipelineTemplate& pipeline) {
        state.assign_template({*box.costs, box.replicas, box.rounds, state.goal}, pipeline,
                              *of[&box - boxes.data()]);
      },
      [&] { return state.expired(); });
  state.result.stats.labels += outcome.priced;
  state.pass_complete = outcome.complete;
  state.open_value = kNever;
  for (const BranchConfiguration& box : boxes) state.open_value = std::min(state.open_value, box.bound_s);
}

}  // namespace

void search_pass(SearchState& state, Pass pass, int max_stages) {
  state.pass_complete = true;
  state.open_value = kNever;
  if (max_stages == kAnyStages && state.on(feature::kBounding) && state.on(feature::kBestFirst)) {
    if (is_wide(state, pass)) return search_by_branch_and_bound(state);
    if (state.on(feature::kDeepening)) return search_by_deepening(state, pass);
  }
  for (const Configuration& c : state.configurations) {
    if (state.worse(c)) {
      if (state.on(feature::kBestFirst)) break;
      continue;
    }
    if (state.expired() || !state.search_configuration(c, pass, max_stages).complete) {
      state.pass_complete = false;
      state.open_value = std::min(state.open_value, state.value_bound(c));
    }
  }
}

}  // namespace sailor
