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

// Ranks on a node, by the name of their GPU in requests.
using RanksByGpu = std::map<std::string, int>;
using RanksByNode = std::map<std::string, RanksByGpu>;

int total(const RanksByGpu& ranks) {
  int sum = 0;
  for (const auto& [gpu, count] : ranks) sum += count;
  return sum;
}

std::vector<const SnapshotNode*> entries_of(const std::string& node, const LiveCluster& cluster) {
  std::vector<const SnapshotNode*> entries;
  for (const SnapshotNode& entry : cluster.snapshot.nodes)
    if (entry.name == node) entries.push_back(&entry);
  return entries;
}

// `gpu:a:2,gpu:b:1`
std::string gres_text(const RanksByGpu& gpus) {
  std::string text;
  for (const auto& [gpu, count] : gpus) text += fmt::format("{}{}:{}", text.empty() ? "" : ",", gpu, count);
  return text;
}

RanksByGpu all_gpus(const std::string& node, const LiveCluster& cluster) {
  RanksByGpu gpus;
  for (const SnapshotNode* entry : entries_of(node, cluster))
    gpus[entry->host.gres] += static_cast<int>(entry->free_gpus.size());
  return gpus;
}

int64_t to_mb(int64_t bytes) {
  constexpr int64_t kMiB = 1 << 20;
  return (bytes + kMiB - 1) / kMiB;
}

// The least that a rank's GPU comes with on these nodes; 0 = unknown.
int cpus_of_rank(const std::vector<std::string>& nodes, const RanksByNode& ranks,
                 const LiveCluster& cluster) {
  std::optional<int> least;
  for (const std::string& node : nodes) {
    for (const SnapshotNode* entry : entries_of(node, cluster)) {
      if (entry->free_gpus.empty() || !ranks.at(node).contains(entry->host.gres)) continue;
      const int here = entry->host.cpus / static_cast<int>(entry->free_gpus.size());
      least = std::min(least.value_or(here), here);
    }
  }
  return least.value_or(0);
}

// The most that a rank on these nodes needs; 0 = unknown.
int64_t memory_mb_of_rank(const std::vector<std::string>& nodes, const RanksByNode& ranks,
                          const LiveCluster& cluster, const RankRequest& request) {
  int64_t most = 0;
  for (const std::string& node : nodes) {
    for (const SnapshotNode* entry : entries_of(node, cluster)) {
      const auto memory = request.memory_bytes.find(entry->gpu_type);
      if (memory != request.memory_bytes.end() && ranks.at(node).contains(entry->host.gres))
        most = std::max(most, to_mb(memory->second));
    }
  }
  return most;
}

// Can a component with the same memory for every rank be on these nodes?
bool has_memory(const std::vector<std::string>& nodes, const RanksByNode& ranks, const LiveCluster& cluster,
                const RankRequest& request) {
  const int64_t mb = memory_mb_of_rank(nodes, ranks, cluster, request);
  return std::all_of(nodes.begin(), nodes.end(), [&](const std::string& node) {
    return mb * total(ranks.at(node)) <= to_mb(cluster.snapshot.find(node)->host.memory_bytes);
  });
}

void request_parts(Component& component, const RanksByNode& ranks, const LiveCluster& cluster,
                   const RankRequest& request) {
  const RanksByGpu& first = ranks.at(component.nodes.front());
  const bool same_gpus = std::all_of(component.nodes.begin(), component.nodes.end(),
                                     [&](const std::string& node) { return ranks.at(node) == first; });
  const bool alike = component.tasks_per_node.has_value();
  component.per_rank = !alike;
  if (alike) component.gres = same_gpus ? gres_text(first) : fmt::format("gpu:{}", *component.tasks_per_node);
  const int cpus = request.cpus.value_or(cpus_of_rank(component.nodes, ranks, cluster));
  component.cpus_per_task = request.cpus_are_given ? 0 : cpus;
  component.memory_is_given = request.memory_is_given;
  const int64_t mb = memory_mb_of_rank(component.nodes, ranks, cluster, request);
  component.memory_mb = alike ? *component.tasks_per_node * mb : mb;
  for (const std::string& node : component.nodes) {
    const int count = total(ranks.at(node));
    component.needs.push_back({false, ranks.at(node), std::max(1, cpus) * count, mb * count});
  }
}

Component make_component(const LivePartition& partition, const std::vector<std::string>& nodes,
                         const RanksByNode& ranks, const LiveCluster& cluster, const RankRequest& request) {
  Component component;
  component.partition = partition.name;
  component.nodes = nodes;
  component.whole_nodes = partition.whole_nodes;
  component.tasks_per_node = total(ranks.at(nodes.front()));
  for (const std::string& node : nodes) {
    const int count = total(ranks.at(node));
    component.tasks += count;
    component.tasks_by_node.push_back(count);
    if (count != component.tasks_per_node) component.tasks_per_node.reset();
  }
  if (!component.whole_nodes) {
    request_parts(component, ranks, cluster, request);
    return component;
  }
  component.gres = gres_text(all_gpus(nodes.front(), cluster));
  component.memory_is_given = request.memory_is_given;
  for (const std::string& node : nodes) {
    if (gres_text(all_gpus(node, cluster)) != component.gres) component.gres.clear();
    component.needs.push_back({});
  }
  return component;
}

// A component for these nodes of a partition, or one for each kind of node.
void add_components(const LivePartition& partition, const std::vector<std::string>& nodes,
                    const RanksByNode& ranks, const LiveCluster& cluster, const RankRequest& request,
                    std::vector<Component>& components) {
  std::map<RanksByGpu, std::vector<std::string>> kinds;
  bool several_types = false;
  for (const std::string& node : nodes) {
    kinds[ranks.at(node)].push_back(node);
    several_types = several_types || entries_of(node, cluster).size() > 1;
  }
  const bool one = kinds.size() == 1 || (!several_types && has_memory(nodes, ranks, cluster, request));
  if (partition.whole_nodes || one) {
    components.push_back(make_component(partition, nodes, ranks, cluster, request));
    return;
  }
  for (const auto& [of_node, members] : kinds)
    components.push_back(make_component(partition, members, ranks, cluster, request));
}

// A request per node cannot say that nodes with more ranks need more memory. Slurm refuses components that
// ask in different forms, because later ones inherit the options of the first.
void choose_form_of_memory(std::vector<Component>& components) {
  const auto of_parts = [](const Component& component) { return !component.whole_nodes; };
  const bool needed = std::any_of(components.begin(), components.end(),
                                  [](const Component& component) { return component.per_rank; });
  const bool possible = std::all_of(components.begin(), components.end(), [&](const Component& component) {
    return !of_parts(component) || component.cpus_per_task > 0;
  });
  for (Component& component : components) component.memory_per_cpu = needed && possible;
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

std::vector<Component> allocate(const Plan& plan, const LiveCluster& cluster, const RankRequest& request) {
  RanksByNode ranks;
  RankLayout layout(plan);
  for (const RankSlot& slot : layout.slots()) {
    if (slot.node.empty())
      throw std::runtime_error(fmt::format("rank {} of the plan is not placed on a node", slot.rank));
    const SnapshotNode* entry = cluster.snapshot.find(slot.node, stage_of(plan, slot).gpu_type);
    if (entry == nullptr) {
      throw std::runtime_error(
          fmt::format("the plan uses node {}, which the cluster does not offer", slot.node));
    }
    ++ranks[slot.node][entry->host.gres];
  }
  std::vector<std::string> nodes;
  for (const auto& [node, count] : ranks) nodes.push_back(node);
  std::sort(nodes.begin(), nodes.end(), host_less);

  std::vector<Component> components;
  for (const LivePartition& partition : cluster.partitions) {
    if (!components.empty() || !holds_all(partition, nodes)) continue;
    add_components(partition, nodes, ranks, cluster, request, components);
  }
  if (components.empty()) {
    std::map<std::string, std::vector<std::string>> by_partition;
    for (const std::string& node : nodes)
      by_partition[cluster.snapshot.find(node)->partition].push_back(node);
    for (const LivePartition& partition : cluster.partitions) {
      const auto members = by_partition.find(partition.name);
      if (members != by_partition.end())
        add_components(partition, members->second, ranks, cluster, request, components);
    }
  }
  std::sort(components.begin(), components.end(), [](const Component& a, const Component& b) {
    return host_less(a.nodes.front(), b.nodes.front());
  });
  choose_form_of_memory(components);
  return components;
}

namespace {

// A node for each rank, which Slurm takes as the number of ranks on it.
std::vector<std::string> node_of_each_task(const Component& component) {
  std::vector<std::string> hosts;
  for (size_t i = 0; i < component.nodes.size(); ++i)
    hosts.insert(hosts.end(), static_cast<size_t>(component.tasks_by_node[i]), component.nodes[i]);
  return hosts;
}

void add_memory(const Component& component, std::vector<std::string>& options) {
  if (component.memory_is_given) return;
  const int most = *std::max_element(component.tasks_by_node.begin(), component.tasks_by_node.end());
  const int64_t of_node_mb = component.memory_mb * (component.per_rank ? most : 1);
  if (component.whole_nodes) {
    options.emplace_back(component.memory_per_cpu ? "--mem-per-cpu=0" : "--mem=0");
  } else if (component.memory_mb > 0 && component.memory_per_cpu) {
    const int64_t cpus = component.cpus_per_task;
    const int64_t of_rank_mb = (of_node_mb + most - 1) / most;
    options.push_back(fmt::format("--mem-per-cpu={}M", (of_rank_mb + cpus - 1) / cpus));
  } else if (component.memory_mb > 0) {
    options.push_back(fmt::format("--mem={}M", of_node_mb));
  }
}

}  // namespace

std::vector<std::string> submit_options(const Component& component) {
  std::vector<std::string> options = {fmt::format("--partition={}", component.partition)};
  if (component.by_name) {
    options.push_back(
        fmt::format("--nodelist={}",
                    fmt::join(component.per_rank ? node_of_each_task(component) : component.nodes, ",")));
  }
  if (!component.constraint.empty()) options.push_back("--constraint=" + component.constraint);
  // 24.11 refuses a number of nodes besides a list of ranks.
  options.push_back(component.per_rank ? "--distribution=arbitrary"
                                       : fmt::format("--nodes={}", component.nodes.size()));
  options.push_back(fmt::format("--ntasks={}", component.tasks));
  if (component.tasks_per_node)
    options.push_back(fmt::format("--ntasks-per-node={}", *component.tasks_per_node));
  if (component.cpus_per_task > 0)
    options.push_back(fmt::format("--cpus-per-task={}", component.cpus_per_task));
  add_memory(component, options);
  // Without the type: steps of a job that has it here may not ask for GPUs without it. Each node has one.
  if (component.per_rank) options.emplace_back("--gpus-per-task=1");
  if (!component.gres.empty()) options.push_back("--gres=" + component.gres);
  if (component.whole_nodes) options.emplace_back("--exclusive");
  return options;
}

std::vector<std::string> submit_options_evenly(const Component& component) {
  Component even = component;
  even.memory_per_cpu = false;
  if (!component.per_rank) return submit_options(even);
  const int most = *std::max_element(component.tasks_by_node.begin(), component.tasks_by_node.end());
  even.per_rank = false;
  even.gres = fmt::format("gpu:{}", most);
  even.memory_mb *= most;
  even.tasks = most * static_cast<int>(component.nodes.size());
  even.tasks_per_node = most;
  return submit_options(even);
}

std::vector<std::string> submit_options_with_tasks(const Component& component) {
  std::vector<std::string> options = submit_options_evenly(component);
  if (component.tasks_per_node) return options;
  std::erase_if(options, [](const std::string& option) {
    return option.starts_with("--nodes=") || option.starts_with("--ntasks");
  });
  options.push_back(fmt::format("--ntasks={}", component.tasks));
  options.push_back(fmt::format("--nodelist={}", fmt::join(node_of_each_task(component), ",")));
  options.emplace_back("--distribution=arbitrary");
  return options;
}

}  // namespace sailor
