#include "planner/search/change_room.h"

#include <map>
#include <utility>

#include "planner/plan/rank_layout.h"
#include "planner/simulator/change_memory.h"

namespace sailor {
namespace {

using GpuOfNode = std::pair<std::string, int>;

std::map<GpuOfNode, std::pair<int, StagePrediction>> ranks_by_gpu(const PlanningContext& context,
                                                                  const Plan& plan) {
  std::map<GpuOfNode, std::pair<int, StagePrediction>> ranks;
  const RankLayout layout(plan);
  for (const StagePrediction& stage : simulate(context, plan).stages) {
    const PlanStage& placed =
        plan.pipelines.at(static_cast<size_t>(stage.pipeline)).stages.at(static_cast<size_t>(stage.stage));
    const int base = layout.base(stage.pipeline, stage.stage);
    for (size_t i = 0; i < placed.gpus.size(); ++i)
      ranks.emplace(GpuOfNode{placed.node, placed.gpus[i]}, std::pair(base + static_cast<int>(i), stage));
  }
  return ranks;
}

}  // namespace

std::set<int> ranks_without_room(const PlanningContext& context, const Plan& from, const Plan& to) {
  std::set<int> without;
  const auto before = ranks_by_gpu(context, from);
  for (const auto& [gpu, after] : ranks_by_gpu(context, to)) {
    const auto& [rank, stage] = after;
    const auto old = before.find(gpu);
    if (old != before.end() &&
        change_bytes(old->second.second.memory, stage.memory, context.framework) > stage.capacity_bytes)
      without.insert(rank);
  }
  return without;
}

}  // namespace sailor
