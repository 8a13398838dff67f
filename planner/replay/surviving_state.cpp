#include "planner/replay/surviving_state.h"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>

#include "planner/plan/plan_nodes.h"

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
  int parts = 1;
  for (const PlanPipeline& pipeline : plan.pipelines)
    for (const PlanStage& stage : pipeline.stages) parts = std::lcm(parts, stage.shape.parts());
  // By layer, element range [k, k + 1) / parts of each of its tensors, and share of it.
  std::map<std::array<int, 3>, bool> held;
  for_each_share(plan, [&](const PlanStage& stage, int layer, int copy, int share) {
    const int parts_of_rank = parts / stage.shape.parts();
    for (int gpu = 0; gpu < stage.shape.gpus(); ++gpu) {
      if (stage.shape.copy_of(gpu) != copy) continue;
      const bool remains = !is_lost(stage, gpu, lost);
      const int first = stage.shape.part_of(gpu) * parts_of_rank;
      for (int part = first; part < first + parts_of_rank; ++part) {
        bool& is_held = held[{layer, part, share}];
        is_held = is_held || remains;
      }
    }
  });
  return std::all_of(held.begin(), held.end(), [](const auto& entry) { return entry.second; });
}

}  // namespace sailor
