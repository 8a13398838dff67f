#include "planner/plan/node_groups.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "planner/spec/error.h"
#include "planner/spec/name_list.h"

namespace sailor {

std::string to_json(const std::vector<NodeGroup>& groups) {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const NodeGroup& group : groups) json.push_back({{"planned", group.planned}, {"equal", group.equal}});
  return json.dump();
}

std::vector<NodeGroup> parse_node_groups(const std::string& json, const std::string& source) {
  try {
    std::vector<NodeGroup> groups;
    for (const nlohmann::json& group : nlohmann::json::parse(json))
      groups.push_back({group.at("planned"), group.at("equal")});
    return groups;
  } catch (const nlohmann::json::exception& error) {
    throw InputError({source}, error.what());
  }
}

NodeMoves moves_to(const std::vector<std::string>& nodes, const std::vector<NodeGroup>& groups) {
  std::set<std::string> planned;
  for (const NodeGroup& group : groups) planned.insert(group.planned.begin(), group.planned.end());
  NodeMoves moves;
  std::set<std::string> taken;
  for (const NodeGroup& group : groups) {
    const std::set<std::string> equal(group.equal.begin(), group.equal.end());
    auto next = nodes.begin();
    for (const std::string& name : group.planned) {
      if (contains(nodes, name)) continue;
      next = std::find_if(next, nodes.end(), [&](const std::string& node) {
        return equal.contains(node) && !planned.contains(node) && !taken.contains(node);
      });
      if (next == nodes.end()) break;
      taken.insert(*next);
      moves[name] = *next;
    }
  }
  return moves;
}

Plan moved(Plan plan, const NodeMoves& moves) {
  for (PlanPipeline& pipeline : plan.pipelines)
    for (PlanStage& stage : pipeline.stages)
      if (const auto move = moves.find(stage.node); move != moves.end()) stage.node = move->second;
  return plan;
}

Snapshot moved(Snapshot snapshot, const NodeMoves& moves) {
  NodeMoves exchanged = moves;
  for (const auto& [from, to] : moves) exchanged[to] = from;
  const auto rename = [&](SnapshotNode& node) {
    if (const auto move = exchanged.find(node.name); move != exchanged.end()) node.name = move->second;
  };
  for (SnapshotNode& node : snapshot.nodes) rename(node);
  for (BusyNode& busy : snapshot.busy) rename(busy.node);
  return snapshot;
}

Snapshot like_planned(const Snapshot& of_plan, const std::vector<NodeGroup>& groups,
                      const std::vector<std::string>& nodes) {
  Snapshot snapshot;
  for (const NodeGroup& group : groups) {
    for (const std::string& name : nodes) {
      if (!contains(group.equal, name)) continue;
      for (const SnapshotNode& node : of_plan.nodes) {
        if (node.name != group.planned.front()) continue;
        snapshot.nodes.push_back(node);
        snapshot.nodes.back().name = name;
      }
    }
  }
  return snapshot;
}

}  // namespace sailor
