#include "planner/search/realize.h"

#include <algorithm>

namespace sailor {
namespace {

constexpr int kMostGpus = 16;

bool all_pure(const RealizeProblem& problem, const Skeleton& skeleton) {
  return std::all_of(skeleton.stages.begin(), skeleton.stages.end(), [&](const Skeleton::Stage& stage) {
    return problem.costs.modes()[stage.mode].kind == StageMode::Kind::pure;
  });
}

}  // namespace

bool is_small(const Resources& resources) {
  return resources.gpus() <= kMostGpus;
}

std::vector<std::vector<int>> serving_options(const RealizeProblem& problem, const Skeleton& skeleton) {
  const ModeCosts& costs = problem.costs;
  std::vector<std::vector<int>> out;
  const int P = static_cast<int>(skeleton.stages.size());
  for (int i = 0; i < P; ++i) {
    const Skeleton::Stage& stage = skeleton.stages[i];
    const int in_flight = P - i;
    const double slowest = costs.compute_s(stage.mode, stage.first_layer, stage.end_layer) * (1 + kSameTime);
    std::vector<int> options;
    for (const StageMode::Group& group : costs.modes()[stage.mode].groups)
      if (costs.stage().compute_s(group.option, stage.first_layer, stage.end_layer) <= slowest &&
          problem.costs.lowest_first(group.option, stage.end_layer, in_flight, problem.replicas) <=
              stage.first_layer)
        options.insert(options.end(), group.options.begin(), group.options.end());
    out.push_back(std::move(options));
  }
  return out;
}

std::optional<Realized> realize(const RealizeProblem& problem, const Skeleton& skeleton, double threshold,
                                bool* exactly) {
  const Resources& resources = problem.costs.resources();
  *exactly = true;
  if (all_pure(problem, skeleton)) {
    Realized out;
    for (const Skeleton::Stage& stage : skeleton.stages)
      out.layout.stages.push_back({stage.first_layer,
                                   stage.end_layer,
                                   {{problem.costs.modes()[stage.mode].slowest(), problem.replicas}}});
    if (!within_resources(resources, out.layout)) return std::nullopt;
    out.value = evaluate(problem.costs.stage(), resources, out.layout, problem.replicas, problem.microbatches,
                         problem.overhead_s);
    const bool allowed =
        out.value.iteration_s <= problem.goal.max_iteration_s && out.value.usd <= problem.goal.max_usd;
    if (!allowed || problem.goal.value(out.value.iteration_s, out.value.usd) >= threshold)
      return std::nullopt;
    return out;
  }
  const bool sums_are_exact = problem.costs.stage().model() == CostModel::published;
  if (is_small(resources) && sums_are_exact) return realize_by_columns(problem, skeleton, threshold);
  *exactly = false;
  return realize_by_zones(problem, skeleton, threshold);
}

}  // namespace sailor
