#include "spank_plugin/slurm/allocation.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <stdexcept>

#include "planner/plan/rank_layout.h"

namespace sailor {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// Does the partition offer all these nodes to one job?
bool holds_all(const LivePartition& partition, const std::vector<std::string>& nodes) {
  if (partition.max_nodes && static_cast<int>(nodes.size()) > *partition.max_nodes) return false;
  std::set<std::string> members(partition.nodes.begin(), partition.nodes.end());
  return std::all_of(nodes.begin(), nodes.end(),
                     [&](const std::string& node) { return members.count(node) > 0; });
}

const std::string& gres_of(const LiveCluster& cluster, const std::string& node) {
  for (const LiveNode& live : cluster.nodes) {
    if (live.name == node) return live.gres;
  }
  throw std::runtime_error(fmt::format("the plan uses node {}, which the cluster does not offer", node));
}

Component make_component(const std::string& partition, const std::vector<std::string>& nodes,
                         const std::map<std::string, int>& ranks, const LiveCluster& cluster) {
  Component component;
  component.partition = partition;
  component.nodes = nodes;
  component.gres = gres_of(cluster, nodes.front());
  component.tasks_per_node = ranks.at(nodes.front());
  for (const std::string& node : nodes) {
    component.tasks += ranks.at(node);
    component.tasks_by_node.push_back(ranks.at(node));
    if (ranks.at(node) != component.tasks_per_node) component.tasks_per_node.reset();
    if (gres_of(cluster, node) != component.gres) component.gres.clear();
  }
  return component;
}

}  // namespace

bool host_less(const std::string& a, const std::string& b) {
  size_t i = 0;
  size_t k = 0;
  while (i < a.size() && k < b.size()) {
    if (is_digit(a[i]) && is_digit(b[k])) {
      size_t end_a = i;
      size_t end_b = k;
      while (end_a < a.size() && is_digit(a[end_a])) ++end_a;
      while (end_b < b.size() && is_digit(b[end_b])) ++end_b;
      std::string digits_a = a.substr(i, end_a - i);
      std::string digits_b = b.substr(k, end_b - k);
      digits_a.erase(0, std::min(digits_a.find_first_not_of('0'), digits_a.size()));
      digits_b.erase(0, std::min(digits_b.find_first_not_of('0'), digits_b.size()));
      if (digits_a.size() != digits_b.size()) return digits_a.size() < digits_b.size();
      if (digits_a != digits_b) return digits_a < digits_b;
      i = end_a;
      k = end_b;
    } else {
      if (a[i] != b[k]) return a[i] < b[k];
      ++i;
      ++k;
    }
  }
  if (i < a.size() || k < b.size()) return k < b.size();
  return a < b;  // n1 and n01
}

std::vector<Component> allocate(const Plan& plan, const LiveCluster& cluster) {
  std::map<std::string, int> ranks;  // by node
  RankLayout layout(plan);
  for (const RankSlot& slot : layout.slots()) {
    if (slot.node.empty())
      throw std::runtime_error(fmt::format("rank {} of the plan is not placed on a node", slot.rank));
    if (cluster.snapshot.find(slot.node) == nullptr) {
      throw std::runtime_error(
          fmt::format("the plan uses node {}, which the cluster does not offer", slot.node));
    }
    ++ranks[slot.node];
  }
  std::vector<std::string> nodes;
  for (const auto& [node, count] : ranks) nodes.push_back(node);
  std::sort(nodes.begin(), nodes.end(), host_less);

  for (const LivePartition& partition : cluster.partitions) {
    if (holds_all(partition, nodes)) return {make_component(partition.name, nodes, ranks, cluster)};
  }
  std::map<std::string, std::vector<std::string>> by_partition;
  for (const std::string& node : nodes) by_partition[cluster.snapshot.find(node)->partition].push_back(node);
  std::vector<Component> components;
  for (const auto& [partition, members] : by_partition) {
    components.push_back(make_component(partition, members, ranks, cluster));
  }
  std::sort(components.begin(), components.end(), [](const Component& a, const Component& b) {
    return host_less(a.nodes.front(), b.nodes.front());
  });
  return components;
}

std::vector<std::string> submit_options(const Component& component) {
  std::vector<std::string> options = {
      fmt::format("--partition={}", component.partition),
      fmt::format("--nodelist={}", fmt::join(component.nodes, ",")),
      fmt::format("--nodes={}", component.nodes.size()),
      fmt::format("--ntasks={}", component.tasks),
  };
  if (component.tasks_per_node)
    options.push_back(fmt::format("--ntasks-per-node={}", *component.tasks_per_node));
  if (!component.gres.empty()) options.push_back("--gres=" + component.gres);
  options.emplace_back("--exclusive");
  return options;
}

std::vector<std::string> submit_options_with_tasks(const Component& component) {
  std::vector<std::string> options = submit_options(component);
  if (component.tasks_per_node) return options;
  std::vector<std::string> hosts;  // one per task
  for (size_t i = 0; i < component.nodes.size(); ++i)
    hosts.insert(hosts.end(), static_cast<size_t>(component.tasks_by_node[i]), component.nodes[i]);
  // 24.11 refuses a number of nodes besides such a list.
  std::erase_if(options, [](const std::string& option) { return option.starts_with("--nodes="); });
  options.push_back(fmt::format("--nodelist={}", fmt::join(hosts, ",")));
  options.emplace_back("--distribution=arbitrary");
  return options;
}

}  // namespace sailor
