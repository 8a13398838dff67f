#include "planner/search/assignment/assignment.h"

#include <algorithm>

namespace sailor {
namespace {

constexpr int kMostGpus = 16;

bool all_pure(const AssignmentProblem& problem, const PipelineTemplate& pipeline) {
  return std::all_of(pipeline.stages.begin(), pipeline.stages.end(),
                     [&](const PipelineTemplate::Stage& stage) {
                       return problem.costs.classes()[stage.placement].kind == PlacementClass::Kind::pure;
                     });
}

}  // namespace

bool is_small(const Resources& resources) {
  return resources.gpus() <= kMostGpus;
}

std::vector<std::vector<int>> serving_options(const AssignmentProblem& problem,
                                              const PipelineTemplate& pipeline) {
  const ClassCosts& costs = problem.costs;
  std::vector<std::vector<int>> out;
  const int P = static_cast<int>(pipeline.stages.size());
  for (int i = 0; i < P; ++i) {
    const PipelineTemplate::Stage& stage = pipeline.stages[i];
    const int in_flight = P - i;
    const double slowest =
        costs.compute_s(stage.placement, stage.first_layer, stage.end_layer) * (1 + kSameTime);
    std::vector<int> options;
    for (const PlacementClass::Group& group : costs.classes()[stage.placement].groups)
      if (costs.stage().compute_s(group.option, stage.first_layer, stage.end_layer) <= slowest &&
          problem.costs.lowest_first(group.option, stage.end_layer, in_flight) <= stage.first_layer)
        options.insert(options.end(), group.options.begin(), group.options.end());
    out.push_back(std::move(options));
  }
  return out;
}

std::optional<Assignment> assign(const AssignmentProblem& problem, const PipelineTemplate& pipeline,
                                 double threshold, bool* exactly) {
  const Resources& resources = problem.costs.resources();
  *exactly = true;
  if (all_pure(problem, pipeline)) {
    Assignment out;
    for (const PipelineTemplate::Stage& stage : pipeline.stages)
      out.layout.stages.push_back({stage.first_layer,
                                   stage.end_layer,
                                   {{problem.costs.classes()[stage.placement].slowest(), problem.replicas}}});
    if (!within_resources(resources, out.layout)) return std::nullopt;
    out.value =
        evaluate(problem.costs.stage(), resources, out.layout, problem.replicas, problem.microbatches);
    if (problem.goal.allowed_value(out.value.iteration_s, out.value.charge) >= threshold) return std::nullopt;
    return out;
  }
  if (is_small(resources)) return assign_exactly(problem, pipeline, threshold);
  *exactly = false;
  return assign_greedily(problem, pipeline, threshold);
}

}  // namespace sailor
