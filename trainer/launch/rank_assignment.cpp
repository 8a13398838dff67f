#include "trainer/launch/rank_assignment.h"

#include <fmt/format.h>

#include <map>
#include <stdexcept>

#include "planner/plan/rank_layout.h"

namespace sailor {

std::vector<int> assign_ranks(const Plan& plan, const std::vector<std::string>& nodes) {
  const RankLayout layout(plan);
  std::map<std::string, int> started;
  for (const std::string& node : nodes) ++started[node];
  for (const std::string& node : layout.nodes()) started.try_emplace(node, 0);
  for (const auto& [node, count] : started) {
    const size_t planned = layout.ranks_on(node).size();
    if (static_cast<size_t>(count) != planned)
      throw std::runtime_error(fmt::format("node {}: {} processes were started, the plan has {} ranks there",
                                           node, count, planned));
  }
  std::vector<int> ranks;
  std::map<std::string, size_t> taken;
  for (const std::string& node : nodes) ranks.push_back(layout.ranks_on(node)[taken[node]++]);
  return ranks;
}

}  // namespace sailor
