#include "planner/search/published/search_state.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "planner/search/costs/layout.h"
#include "planner/search/problem/goal.h"

namespace sailor {
namespace {}  // namespace

SearchState::SearchState(const PlanningContext& context, const PlanOptions& options)
    : context(context),
      options(options),
      deadline(options.time_limit_s, options.stop),
      resources(usable_resources(context, options, result.rejected)),
      goal(goal_of(context.job)),
      tables(cost_tables(context, resources)),
      candidates(context, resources, goal),
      best_sum(kNever),
      open_value(kNever),
      pass_tables_(resources, options.previous, goal.charge_matters()) {}

void SearchState::sort_configurations() {
  std::stable_sort(
      configurations.begin(), configurations.end(),
      [&](const Configuration& a, const Configuration& b) { return value_bound(a) < value_bound(b); });
}

TemplateProblem SearchState::template_problem(const Configuration& c, Pass pass) {
  pass = pass_of(c, pass);
  PassTables& shared = tables_of(c, pass);
  TemplateProblem problem{*shared.costs, shared.limits, *shared.bounds, c.replicas, c.rounds, goal};
  problem.dominance = on(feature::kDominance);
  problem.pure_dominance = pass == Pass::exact;
  problem.bounding = on(feature::kBounding);
  return problem;
}

TemplateOutcome SearchState::search_configuration(const Configuration& c, Pass pass, int max_stages,
                                                  double target, double searched) {
  ++result.stats.configurations;
  TemplateProblem problem = template_problem(c, pass);
  problem.max_stages = max_stages;
  const AssignmentProblem form{problem.costs, c.replicas, c.rounds, goal};
  const TemplateOutcome outcome = search_templates(
      problem, [&] { return std::min(target, best_sum); },
      [&](const PipelineTemplate& pipeline) {
        if (goal.value(pipeline.iteration_s, pipeline.charge) >= searched) assign_template(form, pipeline, c);
      },
      [&] { return expired(); });
  result.stats.labels += outcome.labels;
  if (outcome.out_of_memory) ++result.rejected["memory"];
  if (outcome.over_budget) ++result.rejected[kind_of(goal.followed()).limit];
  if (outcome.too_slow) ++result.rejected[kThroughputFloor];
  return outcome;
}

void SearchState::assign_template(const AssignmentProblem& form, const PipelineTemplate& pipeline,
                                  const Configuration& c) {
  ++result.stats.plans_scored;
  bool exactly = false;
  const double accepted = best_sum;
  // What is not quite as good may be when it is improved.
  const double slack = is_small(resources) ? 1 : Shortlist::kSlack;
  std::optional<Assignment> assigned = assign(form, pipeline, accepted * slack, &exactly);
  if (!exactly) open_value = std::min(open_value, goal.value(pipeline.iteration_s, pipeline.charge));
  if (!assigned) return;
  if (goal.value(assigned->value.iteration_s, assigned->value.charge) < accepted)
    keep(*assigned, *c.costs, c.replicas);
  if (!exactly) shortlist_.add(form, std::move(*assigned), goal.value(pipeline.iteration_s, pipeline.charge));
}

void SearchState::keep(const Assignment& assigned, const StageCosts& costs, int replicas) {
  const double value = goal.value(assigned.value.iteration_s, assigned.value.charge);
  Plan plan = plan_of(context, resources, assigned.layout, costs.microbatch(), replicas);
  candidates.keep(std::move(plan), value);
  best_sum = std::min(best_sum, value);
}

void SearchState::improve_shortlist() {
  shortlist_.improve(
      !options.previous.empty(), [&] { return best_sum; },
      [&](const AssignmentProblem& form, const Assignment& better) {
        keep(better, form.costs.stage(), form.replicas);
      },
      [&] { return expired(); });
}

}  // namespace sailor
