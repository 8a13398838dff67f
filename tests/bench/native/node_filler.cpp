#include "tests/bench/native/node_filler.h"

#include <algorithm>
#include <tuple>

namespace sailor::bench {

std::vector<GpuGroup> tp_groups(const Snapshot& snapshot, const std::vector<std::string>& types,
                                const std::vector<std::string>& zones, int tp) {
  const auto has = [](const std::vector<std::string>& names, const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  std::vector<const SnapshotNode*> nodes;
  for (const SnapshotNode& node : snapshot.nodes)
    if (has(types, node.gpu_type) && has(zones, node.zone)) nodes.push_back(&node);
  std::sort(nodes.begin(), nodes.end(), [](const SnapshotNode* a, const SnapshotNode* b) {
    return std::tie(a->zone, a->gpu_type, a->name) < std::tie(b->zone, b->gpu_type, b->name);
  });
  std::vector<GpuGroup> groups;
  for (const SnapshotNode* node : nodes)
    for (size_t first = 0; first + static_cast<size_t>(tp) <= node->free_gpus.size();
         first += static_cast<size_t>(tp)) {
      const auto begin = node->free_gpus.begin() + static_cast<std::ptrdiff_t>(first);
      groups.push_back({node, {begin, begin + tp}});
    }
  return groups;
}

void put(PlanStage& stage, const GpuGroup& group) {
  stage.gpu_type = group.node->gpu_type;
  stage.zone = group.node->zone;
  stage.node = group.node->name;
  stage.gpus = group.gpus;
  stage.shape.tp = static_cast<int>(group.gpus.size()) / stage.shape.cp;
}

NodeFiller::NodeFiller(const Snapshot& snapshot) {
  for (const SnapshotNode& node : snapshot.nodes) nodes_[node.name] = {&node, node.free_gpus};
}

void NodeFiller::take(const Plan& plan) {
  for (const PlanPipeline& pipeline : plan.pipelines)
    for (const PlanStage& stage : pipeline.stages) {
      const auto it = nodes_.find(stage.node);
      if (it == nodes_.end()) continue;
      std::erase_if(it->second.free, [&](int gpu) {
        return std::find(stage.gpus.begin(), stage.gpus.end(), gpu) != stage.gpus.end();
      });
    }
}

bool NodeFiller::fill(PlanStage& stage, const std::string& near) {
  const size_t gpus = static_cast<size_t>(stage.shape.gpus());
  Node* chosen = nullptr;
  for (auto& [name, node] : nodes_) {
    if (node.node->gpu_type != stage.gpu_type || node.node->zone != stage.zone || node.free.size() < gpus)
      continue;
    if (name == near) {
      chosen = &node;
      break;
    }
    if (chosen == nullptr || node.free.size() < chosen->free.size()) chosen = &node;
  }
  if (chosen == nullptr) return false;
  const auto end = chosen->free.begin() + static_cast<std::ptrdiff_t>(gpus);
  put(stage, {chosen->node, {chosen->free.begin(), end}});
  chosen->free.erase(chosen->free.begin(), end);
  return true;
}

}  // namespace sailor::bench
