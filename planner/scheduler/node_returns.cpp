#include "planner/scheduler/node_returns.h"

#include <algorithm>

namespace sailor {

std::vector<std::string> NodeReturns::wanted_by(const JobInWait& job) {
  const double limit_s = job.limit_s.value_or(std::numeric_limits<double>::infinity());
  Choice choice;
  for (const JobInWait::Part& part : job.parts) add(part, limit_s, choice);
  if (choice.starts) {
    for (const std::string& node : choice.nodes) free_for_s_[node] = 0;
    return choice.returned;
  }
  const double start_in_s = job.start_in_s.value_or(0);
  for (const JobInWait::Part& part : job.parts)
    for (const JobInWait::Node& node : part.could) {
      const auto [kept, is_new] = free_for_s_.emplace(node.name, start_in_s);
      if (!is_new) kept->second = std::min(kept->second, start_in_s);
    }
  return {};
}

void NodeReturns::add(const JobInWait::Part& part, double limit_s, Choice& choice) const {
  std::vector<std::string> free, of_helpers;
  size_t required = 0;
  for (const JobInWait::Node& node : part.could) {
    const auto kept = free_for_s_.find(node.name);
    if (node.use == JobInWait::Use::others || choice.nodes.contains(node.name) ||
        (kept != free_for_s_.end() && kept->second < limit_s))
      continue;
    const bool is_free = node.use == JobInWait::Use::free;
    if (!node.required) {
      (is_free ? free : of_helpers).push_back(node.name);
      continue;
    }
    ++required;
    choice.nodes.insert(node.name);
    if (!is_free) choice.returned.push_back(node.name);
  }
  size_t missing = part.nodes - std::min(required, part.nodes);
  for (; missing > 0 && !free.empty(); --missing, free.pop_back()) choice.nodes.insert(free.back());
  for (; missing > 0 && !of_helpers.empty(); --missing, of_helpers.pop_back()) {
    choice.nodes.insert(of_helpers.back());
    choice.returned.push_back(of_helpers.back());
  }
  choice.starts = choice.starts && missing == 0 && required == part.required;
}

}  // namespace sailor
