#include "planner/search/published/passes.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "planner/search/branch_and_bound/branch_and_bound.h"
#include "planner/search/published/iterative_deepening.h"

namespace sailor {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

// The quick look before the search: partial pipelines per layer and leading placement class, and
// configurations in a row that may bring nothing.
constexpr size_t kBeam = 4;
constexpr int kMostWithoutGain = 12;
// The same where searches by deepening take long: after so many partial pipelines.
constexpr size_t kNarrowBeam = 2;
constexpr int kFewWithoutGain = 4;
constexpr int64_t kLong = 60000;

// More placement classes than that and partial pipelines are too many to list.
constexpr int kWideClasses = 64;

// A good plan ends long searches early, and a beam over few partial pipelines finds one sooner: it is worth
// its time where many of them have come up.
void beam_over_longest(SearchState& state, Pass pass, const std::vector<int64_t>& took) {
  std::vector<size_t> order;
  for (size_t i = 0; i < took.size(); ++i)
    if (took[i] > 0) order.push_back(i);
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return took[a] > took[b]; });
  int without_gain = 0;
  for (size_t i : order) {
    if (without_gain >= kFewWithoutGain || state.expired()) break;
    const double before = state.best_sum;
    state.search_configuration(state.configurations[i], pass, kAnyStages, kNarrowBeam);
    without_gain = state.best_sum < before ? 0 : without_gain + 1;
  }
}

void search_by_deepening(SearchState& state, Pass pass) {
  Deepening problem;
  std::vector<int64_t> took(state.configurations.size(), 0);
  int64_t labels = 0;
  bool beam_done = false;
  for (const Configuration& c : state.configurations) problem.bounds.push_back(state.value_bound(c));
  problem.best = [&] { return state.best_sum; };
  problem.limited = std::isfinite(state.goal.max_usd) || std::isfinite(state.goal.max_iteration_s);
  problem.trusted = !state.options.previous.empty() && pass != Pass::exact && std::isfinite(state.best_sum);
  problem.possible = [&](size_t i, double target) {
    const Configuration& c = state.configurations[i];
    return templates_possible(state.template_problem(c, pass), target);
  };
  problem.search = [&](size_t i, double target, double searched) -> std::optional<int64_t> {
    if (labels > kLong && !std::exchange(beam_done, true)) beam_over_longest(state, pass, took);
    target = std::min(target, state.best_sum);
    const TemplateOutcome outcome =
        state.search_configuration(state.configurations[i], pass, kAnyStages, 0, target, searched);
    took[i] = outcome.labels;
    labels += outcome.labels;
    return outcome.complete ? std::optional(outcome.labels) : std::nullopt;
  };
  problem.expired = [&] { return state.expired(); };
  const Deepened done = deepen(problem);
  state.pass_complete = done.complete;
  state.open_value = std::min(state.open_value, done.open_value);
}

// Too many placement classes to list partial pipelines?
bool is_wide(SearchState& state, Pass pass) {
  return state.goal.objective == Objective::throughput && pass != Pass::exact &&
         !state.configurations.empty() &&
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
      boxes, state.overhead_s, [&] { return state.best_sum; },
      [&](const BranchConfiguration& box, const PipelineTemplate& pipeline) {
        const AssignmentProblem form{*box.costs, box.replicas, box.rounds, state.overhead_s, state.goal};
        state.assign_template(form, pipeline, *of[&box - boxes.data()]);
      },
      [&] { return state.expired(); });
  state.result.stats.labels += outcome.priced;
  state.pass_complete = outcome.complete;
  state.open_value = kNever;
  for (const BranchConfiguration& box : boxes) state.open_value = std::min(state.open_value, box.bound_s);
}

// Bounds that know about stages instead of work alone, and the order of search by them.
void sharpen_bounds(SearchState& state, Pass pass) {
  for (Configuration& c : state.configurations) {
    if (state.expired() || state.worse(c)) break;
    double& bound = state.goal.objective == Objective::throughput ? c.bound_s : c.bound_usd;
    const TemplateProblem problem = state.template_problem(c, pass);
    bound = std::max(bound, least_template_value(problem, state.best_sum));
  }
  state.sort_configurations();
}

}  // namespace

void search_promising(SearchState& state, Pass pass) {
  sharpen_bounds(state, pass);
  int without_gain = 0;
  for (const Configuration& c : state.configurations) {
    if (without_gain >= kMostWithoutGain || state.expired() || state.worse(c)) break;
    const double before = state.best_sum;
    state.search_configuration(c, pass, kAnyStages, kBeam);
    without_gain = state.best_sum < before ? 0 : without_gain + 1;
  }
}

void search_pass(SearchState& state, Pass pass, int max_stages) {
  state.pass_complete = true;
  state.open_value = kNever;
  if (max_stages == kAnyStages && state.on(feature::kBounding) && state.on(feature::kBestFirst)) {
    if (is_wide(state, pass)) return search_by_branch_and_bound(state);
    const bool by_deepening = state.on(feature::kDeepening);
    // A budget keeps a small problem's search from good plans for long: one is found by a beam.
    const bool budget = pass == Pass::exact && std::isfinite(state.goal.max_usd);
    if (!by_deepening || budget) search_promising(state, pass);
    if (by_deepening) return search_by_deepening(state, pass);
  }
  for (const Configuration& c : state.configurations) {
    if (state.worse(c) && state.on(feature::kBestFirst)) break;
    if (state.worse(c)) continue;
    if (state.expired()) {
      state.pass_complete = false;
      state.open_value = std::min(state.open_value, state.value_bound(c));
      if (state.on(feature::kBestFirst)) break;
      continue;
    }
    const TemplateOutcome outcome = state.search_configuration(c, pass, max_stages, 0);
    if (outcome.complete) continue;
    state.pass_complete = false;
    state.open_value = std::min(state.open_value, state.value_bound(c));
  }
}

}  // namespace sailor
