#include "planner/scheduler/allocation.h"

#include <fmt/format.h>

#include <cstdlib>
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
    text += fmt::format("{}{}:{}:{}", text.empty() ? "" : ",", node.name, node.het_group, node.cpus);
  return text;
}

std::vector<AllocatedNode> parse_allocated_nodes(const std::string& text) {
  std::vector<AllocatedNode> nodes;
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) {
    const size_t last = part.rfind(':');
    const size_t first =
        last == std::string::npos || last == 0 ? std::string::npos : part.rfind(':', last - 1);
    if (first == std::string::npos || first == 0)
      throw std::runtime_error(fmt::format("cannot read node \"{}\": expected NAME:HETGROUP:CPUS", part));
    nodes.push_back(
        {part.substr(0, first), std::atoi(part.c_str() + first + 1), std::atoi(part.c_str() + last + 1)});
  }
  return nodes;
}

}  // namespace sailor
