#include "planner/search/improvement/cut_improvement.h"

#include <limits>

namespace sailor {
namespace {

constexpr int kFarthestShift = 3;  // layers

bool memory_suffices(const AssignmentProblem& problem, const Layout& layout) {
  const int P = static_cast<int>(layout.stages.size());
  for (int i = 0; i < P; ++i) {
    const Layout::Stage& stage = layout.stages[i];
    const int in_flight = P - i;
    for (const Layout::Run& run : stage.runs)
      if (problem.costs.lowest_first(run.option, stage.end_layer, in_flight, problem.replicas) >
          stage.first_layer)
        return false;
  }
  return true;
}

}  // namespace

double allowed_value(const Goal& goal, const LayoutValue& value) {
  return value.iteration_s <= goal.max_iteration_s && value.usd <= goal.max_usd
             ? goal.value(value.iteration_s, value.usd)
             : std::numeric_limits<double>::infinity();
}

Assignment improve_cut(const AssignmentProblem& problem, Assignment best) {
  for (bool moved = true; moved;) {
    moved = false;
    for (size_t i = 0; i + 1 < best.layout.stages.size(); ++i)
      for (int distance = 1; distance <= kFarthestShift; ++distance)
        for (int shift : {-distance, distance}) {
          Assignment next = best;
          Layout::Stage &before = next.layout.stages[i], &behind = next.layout.stages[i + 1];
          before.end_layer += shift;
          behind.first_layer += shift;
          if (before.end_layer <= before.first_layer || behind.end_layer <= behind.first_layer) continue;
          if (!memory_suffices(problem, next.layout)) continue;
          next.value = evaluate(problem.costs.stage(), problem.costs.resources(), next.layout,
                                problem.replicas, problem.microbatches, problem.overhead_s);
          if (allowed_value(problem.goal, next.value) >=
              allowed_value(problem.goal, best.value) * (1 - 1e-12))
            continue;
          best = std::move(next);
          moved = true;
        }
  }
  return best;
}

}  // namespace sailor
