#include "planner/scheduler/allocation.h"

#include <fmt/format.h>

#include <cstdio>
#include <sstream>
#include <stdexcept>

namespace sailor {

const AllocatedNode* Allocation::find(const std::string& node) const {
  for (const AllocatedNode& candidate : nodes) {
    if (candidate.name == node) return &candidate;
  }
  return nullptr;
}

std::string to_text(const std::vector<AllocatedNode>& nodes) {
  std::string text;
  for (const AllocatedNode& node : nodes)
    text += fmt::format("{}{}:{}:{}:{}", text.empty() ? "" : ",", node.name, node.het_group, node.cpus,
                        node.gpus);
  return text;
}

std::vector<AllocatedNode> parse_allocated_nodes(const std::string& text) {
  std::vector<AllocatedNode> nodes;
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) {
    AllocatedNode node;
    const size_t colon = part.find(':');
    if (colon == 0 || colon == std::string::npos ||
        std::sscanf(part.c_str() + colon, ":%d:%d:%d", &node.het_group, &node.cpus, &node.gpus) != 3)
      throw std::runtime_error(
          fmt::format("cannot read node \"{}\": expected NAME:HETGROUP:CPUS:GPUS", part));
    node.name = part.substr(0, colon);
    nodes.push_back(std::move(node));
  }
  return nodes;
}

}  // namespace sailor
