#include "planner/spec/busy_nodes.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "planner/spec/text.h"

namespace sailor {
namespace {

// `in use`, or `1 in use, 2 powered down`.
std::string states_text(const std::map<std::string, int>& states) {
  if (states.size() == 1) return states.begin()->first;
  std::string text;
  for (const auto& [state, count] : states)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, state);
  return text;
}

// `; the first comes free within 5 min, all within 2 h`; empty when no end is known.
std::string ends_text(const std::vector<BusyNode>& nodes) {
  std::vector<double> ends;
  for (const BusyNode& busy : nodes)
    if (busy.free_in_s) ends.push_back(*busy.free_in_s);
  if (ends.empty()) return "";
  std::sort(ends.begin(), ends.end());
  const std::string first = duration_text(ends.front()), last = duration_text(ends.back());
  const bool all_known = ends.size() == nodes.size();
  if (all_known && first == last)
    return fmt::format("; {} free within {}", nodes.size() == 1 ? "it comes" : "they come", first);
  return fmt::format("; the first comes free within {}{}", first, all_known ? ", all within " + last : "");
}

}  // namespace

std::string busy_nodes_text(const std::vector<BusyNode>& nodes) {
  std::map<std::string, std::map<std::string, int>> states_by_type;
  for (const BusyNode& busy : nodes) ++states_by_type[busy.node.gpu_type][busy.state];
  std::string text;
  size_t left = states_by_type.size();
  for (const auto& [type, states] : states_by_type) {
    int count = 0;
    for (const auto& [state, in_state] : states) count += in_state;
    const char* separator = text.empty() ? "" : left == 1 ? " and " : ", ";
    const char* nodes_word = !text.empty() ? "" : count == 1 ? " node" : " nodes";
    text += fmt::format("{}{}{} of type {} ({})", separator, count, nodes_word, type, states_text(states));
    --left;
  }
  return text + ends_text(nodes);
}

}  // namespace sailor
