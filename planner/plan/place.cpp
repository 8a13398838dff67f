#include "planner/plan/place.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <stdexcept>
#include <utility>

namespace sailor {
namespace {

struct FreeNode {
  const SnapshotNode* node;
  std::vector<int> gpus;  // still free, ascending
};

struct StageRef {
  size_t pipeline;
  size_t stage;
};

// Free GPUs of every node, less what placed stages of the plan hold. Nodes by name, so that the snapshot's
// order does not matter.
std::vector<FreeNode> free_nodes(const Plan& plan, const Snapshot& snapshot) {
  std::vector<FreeNode> nodes;
  for (const SnapshotNode& node : snapshot.nodes) nodes.push_back({&node, node.free_gpus});
  std::sort(nodes.begin(), nodes.end(),
            [](const auto& a, const auto& b) { return a.node->name < b.node->name; });
  for (const PlanPipeline& pipeline : plan.pipelines) {
    for (const PlanStage& stage : pipeline.stages) {
      if (stage.node.empty()) continue;
      for (FreeNode& free : nodes) {
        if (free.node->name != stage.node) continue;
        for (int gpu : stage.gpus) std::erase(free.gpus, gpu);
      }
    }
  }
  return nodes;
}

// Tries to place every stage of `order`; returns the stage that found no node, or nothing.
const StageRef* try_place(Plan& plan, const std::vector<StageRef>& order, std::vector<FreeNode> nodes,
                          bool prefer_own_nodes) {
  // Only the nodes of its type and zone are of interest to a stage.
  std::map<std::pair<std::string, std::string>, std::vector<FreeNode*>> pools;
  std::map<std::string, const FreeNode*> by_name;
  for (FreeNode& free : nodes) {
    pools[{free.node->gpu_type, free.node->zone}].push_back(&free);
    by_name[free.node->name] = &free;
  }
  std::vector<std::vector<const FreeNode*>> own(plan.pipelines.size());
  for (size_t p = 0; p < plan.pipelines.size(); ++p) {
    for (const PlanStage& stage : plan.pipelines[p].stages) {
      if (stage.node.empty()) continue;
      if (const auto it = by_name.find(stage.node); it != by_name.end()) own[p].push_back(it->second);
    }
  }
  for (const StageRef& ref : order) {
    PlanStage& stage = plan.pipelines[ref.pipeline].stages[ref.stage];
    FreeNode* best = nullptr;
    auto rank = [&](const FreeNode& free) {
      const std::vector<const FreeNode*>& of_pipeline = own[ref.pipeline];
      bool foreign =
          prefer_own_nodes && std::find(of_pipeline.begin(), of_pipeline.end(), &free) == of_pipeline.end();
      return std::pair(foreign, free.gpus.size());
    };
    const auto pool = pools.find({stage.gpu_type, stage.zone});
    if (pool == pools.end()) return &ref;
    for (FreeNode* free : pool->second) {
      bool fits = static_cast<int>(free->gpus.size()) >= stage.tp;
      if (fits && (best == nullptr || rank(*free) < rank(*best))) best = free;
    }
    if (best == nullptr) return &ref;
    stage.node = best->node->name;
    stage.gpus.assign(best->gpus.begin(), best->gpus.begin() + stage.tp);
    best->gpus.erase(best->gpus.begin(), best->gpus.begin() + stage.tp);
    own[ref.pipeline].push_back(best);
  }
  return nullptr;
}

}  // namespace

void place(Plan& plan, const Snapshot& snapshot) {
  std::vector<StageRef> order;
  const auto groups = [&](size_t p) { return static_cast<size_t>(num_groups(plan, plan.pipelines[p])); };
  for (size_t p = 0; p < plan.pipelines.size(); ++p) {
    if (groups(p) == 0)
      throw std::runtime_error(fmt::format("pipeline {}: {} stages cannot be {} chunks on each group of GPUs",
                                           p, plan.pipelines[p].stages.size(), plan.interleave));
  }
  for (size_t p = 0; p < plan.pipelines.size(); ++p) {
    for (size_t s = 0; s < groups(p); ++s) {
      if (plan.pipelines[p].stages[s].node.empty()) order.push_back({p, s});
    }
  }
  auto tp = [&](const StageRef& ref) { return plan.pipelines[ref.pipeline].stages[ref.stage].tp; };
  std::stable_sort(order.begin(), order.end(), [&](const auto& a, const auto& b) { return tp(a) > tp(b); });
  std::vector<FreeNode> nodes = free_nodes(plan, snapshot);

  // Where one degree divides the next, every choice of nodes works; with other degrees, keeping a pipeline
  // together may not.
  Plan attempt = plan;
  const StageRef* failed = try_place(attempt, order, nodes, true);
  if (failed != nullptr) {
    attempt = plan;
    failed = try_place(attempt, order, nodes, false);
  }
  if (failed != nullptr) {
    const PlanStage& stage = plan.pipelines[failed->pipeline].stages[failed->stage];
    throw std::runtime_error(fmt::format(
        "pipeline {}, stage {}: no node of type {} in zone {} has {} free GPU{} left", failed->pipeline,
        failed->stage, stage.gpu_type, stage.zone, stage.tp, stage.tp == 1 ? "" : "s"));
  }
  plan = std::move(attempt);
  // Interleaved chunks are where the first chunk is.
  for (size_t p = 0; p < plan.pipelines.size(); ++p) {
    for (size_t s = groups(p); s < plan.pipelines[p].stages.size(); ++s) {
      plan.pipelines[p].stages[s].node = plan.pipelines[p].stages[s % groups(p)].node;
      plan.pipelines[p].stages[s].gpus = plan.pipelines[p].stages[s % groups(p)].gpus;
    }
  }
}

}  // namespace sailor
