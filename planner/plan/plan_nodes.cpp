#include "planner/plan/plan_nodes.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

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
  std::map<std::pair<std::string, std::string>, SnapshotNode> nodes;  // by name and GPU type
  std::set<std::pair<std::string, int>> used;
  for (const PlanPipeline& pipeline : plan.pipelines) {
    for (size_t s = 0; s < pipeline.stages.size(); ++s) {
      const PlanStage& stage = pipeline.stages[s];
      if (s >= static_cast<size_t>(num_groups(plan, pipeline))) continue;  // on the GPUs of another entry
      SnapshotNode& node = nodes[{stage.node, stage.gpu_type}];
      if (!node.name.empty() && node.zone != stage.zone)
        throw InputError(
            fmt::format("plan: node {} is in zone {} and in zone {}", stage.node, node.zone, stage.zone));
      node.name = stage.node;
      node.gpu_type = stage.gpu_type;
      node.zone = node.region = stage.zone;
      for (const int gpu : stage.gpus) {
        if (!used.insert({stage.node, gpu}).second)
          throw InputError(fmt::format("plan: GPU {} of node {} is used twice", gpu, stage.node));
        node.free_gpus.push_back(gpu);
        node.gpus = std::max(node.gpus, gpu + 1);
      }
    }
  }
  Snapshot snapshot;
  snapshot.file = "the plan's own nodes";
  for (auto& [key, node] : nodes) {
    std::sort(node.free_gpus.begin(), node.free_gpus.end());
    snapshot.nodes.push_back(std::move(node));
  }
  return snapshot;
}

void for_each_share(const Plan& plan, const ShareVisitor& visit) {
  const bool shared = shards_optimizer(plan.zero);
  std::map<std::pair<int, int>, int> next;  // by group of pipelines and layer
  for (int p = 0; p < static_cast<int>(plan.pipelines.size()); ++p) {
    const PlanPipeline& pipeline = plan.pipelines[static_cast<size_t>(p)];
    const auto groups = static_cast<size_t>(num_groups(plan, pipeline));
    for (size_t s = 0; s < pipeline.stages.size(); ++s)
      for (int layer = pipeline.stages[s].first_layer; layer < pipeline.stages[s].end_layer; ++layer)
        for (int copy = 0; copy < pipeline.stages[s].shape.copies(); ++copy) {
          int& share = next[{zero_group_of(plan, p).first, layer}];
          visit(pipeline.stages[s % groups], layer, copy, shared ? share++ : 0);
        }
  }
}

std::set<std::string> only_holders(const Plan& plan) {
  std::map<std::pair<int, int>, std::set<std::string>> nodes;  // by layer and share
  bool placed = true;
  for_each_share(plan, [&](const PlanStage& stage, int layer, int, int share) {
    placed = placed && !stage.node.empty();
    nodes[{layer, share}].insert(stage.node);
  });
  std::set<std::string> only;
  for (const auto& [part, holders] : nodes)
    if (placed && holders.size() == 1) only.insert(*holders.begin());
  return only;
}

void set_regions(Snapshot& snapshot, const SiteConfig& site) {
  for (SnapshotNode& node : snapshot.nodes) node.region = region_of(site, node.zone);
}

}  // namespace sailor
