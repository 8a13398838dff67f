#include "planner/plan/plan_nodes.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "planner/spec/error.h"

namespace sailor {
namespace {

std::string region_of(const SiteConfig& site, const std::string& zone) {
  for (const ZoneRule& rule : site.zones) {
    if (rule.zone == zone) return rule.region;
  }
  return site.default_zone.zone == zone ? site.default_zone.region : zone;
}

}  // namespace

Snapshot nodes_of_plan(const Plan& plan) {
  std::map<std::string, SnapshotNode> nodes;
  for (const PlanPipeline& pipeline : plan.pipelines) {
    for (size_t s = 0; s < pipeline.stages.size(); ++s) {
      const PlanStage& stage = pipeline.stages[s];
      if (s >= static_cast<size_t>(num_groups(plan, pipeline))) continue;  // on the GPUs of another entry
      SnapshotNode& node = nodes[stage.node];
      if (!node.name.empty() && (node.gpu_type != stage.gpu_type || node.zone != stage.zone))
        throw InputError(fmt::format("plan: node {} has GPUs of type {} and of type {}", stage.node,
                                     node.gpu_type, stage.gpu_type));
      node.name = stage.node;
      node.gpu_type = stage.gpu_type;
      node.zone = node.region = stage.zone;
      for (const int gpu : stage.gpus) {
        if (std::find(node.free_gpus.begin(), node.free_gpus.end(), gpu) != node.free_gpus.end())
          throw InputError(fmt::format("plan: GPU {} of node {} is used twice", gpu, stage.node));
        node.free_gpus.push_back(gpu);
        node.gpus = std::max(node.gpus, gpu + 1);
      }
    }
  }
  Snapshot snapshot;
  snapshot.file = "the plan's own nodes";
  for (auto& [name, node] : nodes) {
    std::sort(node.free_gpus.begin(), node.free_gpus.end());
    snapshot.nodes.push_back(std::move(node));
  }
  return snapshot;
}

void set_regions(Snapshot& snapshot, const SiteConfig& site) {
  for (SnapshotNode& node : snapshot.nodes) node.region = region_of(site, node.zone);
}

}  // namespace sailor
