#include "spank_plugin/slurm/usable_nodes.h"

#include <algorithm>

#include "planner/spec/error.h"
#include "planner/spec/name_list.h"
#include "spank_plugin/slurm/feature_expression.h"
#include "spank_plugin/slurm/live_cluster.h"
#include "spank_plugin/slurm/node_use.h"

namespace sailor {
namespace {

bool has_features(const SlurmNode& node, const std::string& expression) {
  try {
    return expression.empty() || satisfies(node.features, expression);
  } catch (const InputError&) {  // a form about several nodes
    return false;
  }
}

// Even if all are in use.
bool has_gpus(const SlurmNode& node, const NodeNeeds& needs) {
  const std::vector<NodeGpus> gpus = gpus_of(node);
  return std::all_of(needs.gpus.begin(), needs.gpus.end(), [&](const auto& need) {
    return std::any_of(gpus.begin(), gpus.end(), [&](const NodeGpus& of_type) {
      return names_gpus(need.first, of_type) && of_type.count >= need.second;
    });
  });
}

}  // namespace

UsableNodes::UsableNodes(const SlurmView& view) : view_(view) {
  for (const SlurmPartition& partition : view.partitions)
    for (const std::string& node : partition.nodes) partitions_of_[node].push_back(&partition);
}

std::optional<NodeNeeds> UsableNodes::needs_of(const SlurmWaitingJob& job, const SlurmNode& node) const {
  const auto partitions = partitions_of_.find(node.name);
  if (partitions == partitions_of_.end() || state_obstacle(node.state)) return std::nullopt;
  if (contains(job.excluded, node.name) || !has_features(node, job.features)) return std::nullopt;
  for (const SlurmPartition* partition : partitions->second) {
    if (!contains(job.partitions, partition->name)) continue;
    NodeNeeds needs = job.needs;
    needs.whole = needs.whole || partition->whole_nodes;
    return has_gpus(node, needs) ? std::optional(needs) : std::nullopt;
  }
  return std::nullopt;
}

std::vector<std::string> UsableNodes::names(const SlurmWaitingJob& job) const {
  std::vector<std::string> names;
  for (const SlurmNode& node : view_.nodes)
    if (needs_of(job, node)) names.push_back(node.name);
  return names;
}

}  // namespace sailor
