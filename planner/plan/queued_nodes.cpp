#include "planner/plan/queued_nodes.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "planner/spec/error.h"

namespace sailor {

bool QueuedNodes::are_like(const SnapshotNode& node) const {
  return node.partition == partition && node.zone == zone && node.gpu_type == gpu_type && node.gpus == gpus;
}

std::vector<QueuedNodes> queued_nodes(const std::vector<const SnapshotNode*>& nodes,
                                      const std::vector<const SnapshotNode*>& without) {
  std::vector<QueuedNodes> queued;
  for (const SnapshotNode* node : nodes) {
    const auto known = std::find_if(queued.begin(), queued.end(),
                                    [&](const QueuedNodes& kind) { return kind.are_like(*node); });
    if (known == queued.end())
      queued.push_back({node->partition, node->zone, node->gpu_type, node->gpus, 1});
    else
      ++known->nodes;
  }
  for (QueuedNodes& kind : queued)
    kind.nodes -= static_cast<int>(
        std::ranges::count_if(without, [&](const SnapshotNode* node) { return kind.are_like(*node); }));
  std::erase_if(queued, [](const QueuedNodes& kind) { return kind.nodes <= 0; });
  return queued;
}

std::string to_json(const std::vector<QueuedNodes>& queued) {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const QueuedNodes& kind : queued)
    json.push_back({{"partition", kind.partition},
                    {"zone", kind.zone},
                    {"gpu_type", kind.gpu_type},
                    {"gpus", kind.gpus},
                    {"nodes", kind.nodes}});
  return json.dump();
}

std::vector<QueuedNodes> parse_queued_nodes(const std::string& json, const std::string& source) {
  try {
    std::vector<QueuedNodes> queued;
    for (const nlohmann::json& kind : nlohmann::json::parse(json))
      queued.push_back(
          {kind.at("partition"), kind.at("zone"), kind.at("gpu_type"), kind.at("gpus"), kind.at("nodes")});
    return queued;
  } catch (const nlohmann::json::exception& error) {
    throw InputError({source}, error.what());
  }
}

}  // namespace sailor
