#include "planner/replay/surviving_state.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace sailor {
namespace {

bool is_lost(const PlanStage& stage, int gpu, const LostGpus& lost) {
  return lost.contains({stage.node, stage.gpus.at(static_cast<size_t>(gpu))});
}

}  // namespace

bool uses_any(const Plan& plan, const LostGpus& gpus) {
  for (const PlanPipeline& pipeline : plan.pipelines)
    for (const PlanStage& stage : pipeline.stages)
      for (int k = 0; k < stage.shape.gpus(); ++k)
        if (is_lost(stage, k, gpus)) return true;
  return false;
}

bool holds_whole_state(const Plan& plan, const LostGpus& lost) {
  if (!uses_any(plan, lost)) return true;
  if (shards_optimizer(plan.zero) && has_replicas(plan)) return false;
  int parts = 1, layers = 0;
  for (const PlanPipeline& pipeline : plan.pipelines)
    for (const PlanStage& stage : pipeline.stages) {
      parts = std::lcm(parts, stage.shape.parts());
      layers = std::max(layers, stage.end_layer);
    }
  // Part k of a layer is element range [k, k + 1) / parts of each of its tensors.
  std::vector<bool> held(static_cast<size_t>(layers) * static_cast<size_t>(parts));
  for (const PlanPipeline& pipeline : plan.pipelines)
    for (const PlanStage& stage : pipeline.stages) {
      const int parts_of_rank = parts / stage.shape.parts();
      for (int k = 0; k < stage.shape.gpus(); ++k) {
        if (is_lost(stage, k, lost)) continue;
        for (int layer = stage.first_layer; layer < stage.end_layer; ++layer) {
          const auto first =
              held.begin() + static_cast<ptrdiff_t>(layer) * parts + stage.shape.part_of(k) * parts_of_rank;
          std::fill(first, first + parts_of_rank, true);
        }
      }
    }
  return std::find(held.begin(), held.end(), false) == held.end();
}

}  // namespace sailor
