#include "spank_plugin/slurm/job_shape.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "planner/spec/name_list.h"
#include "spank_plugin/slurm/commands/gres.h"

namespace sailor {
namespace {

using Kind = std::tuple<std::string, std::map<std::string, int>>;  // zone, GPUs

Kind kind_of(const PartitionNode& node) {
  return {node.zone, node.gpus};
}

// Does the node have these GPUs? A request without a type fits GPUs of all types.
bool has_gpus(const PartitionNode& node, const std::string& request) {
  int all = 0;
  for (const auto& [name, count] : node.gpus) all += count;
  const std::vector<Gres> wanted = parse_gres(request);
  return std::all_of(wanted.begin(), wanted.end(), [&](const Gres& gres) {
    if (gres.type.empty()) return all >= gres.count;
    const auto of_type = node.gpus.find(gres.name + ":" + gres.type);
    return of_type != node.gpus.end() && of_type->second >= gres.count;
  });
}

// Those of the planned nodes that are of one kind.
using Members = std::vector<const PartitionNode*>;

class ShapeOfComponent {
 public:
  ShapeOfComponent(const Component& component, const LivePartition& partition)
      : component_(component), partition_(partition) {
    for (const std::string& name : component.nodes) {
      const auto node = std::find_if(partition.all.begin(), partition.all.end(),
                                     [&](const PartitionNode& other) { return other.name == name; });
      if (node == partition.all.end()) continue;
      kinds_[kind_of(*node)].push_back(&*node);
      ++known_;
    }
  }

  // Adds it to `shape`. Returns why there is none; empty if there is.
  std::string add_to(JobShape& shape, bool has_constraint) const {
    if (component_.per_rank) return "its nodes have different numbers of ranks, which are asked for by node";
    if (known_ != component_.nodes.size())
      return fmt::format("partition {} has not all of its nodes", partition_.name);
    if (kinds_.size() == 1 && others_that_fit(kinds_.begin()->first, "").empty()) {
      shape.constraints.emplace_back();
      add_group(kinds_.begin()->second, shape);
      return "";
    }
    std::vector<std::string> features;
    for (const auto& [kind, members] : kinds_) {
      const std::optional<std::string> feature = has_constraint ? std::nullopt : feature_of(kind, members);
      if (!feature) return indistinct(kind, members, has_constraint);
      features.push_back(kinds_.size() == 1 ? *feature : fmt::format("{}*{}", *feature, members.size()));
      add_group(members, shape);
    }
    const std::string all = fmt::format("{}", fmt::join(features, "&"));
    shape.constraints.push_back(kinds_.size() == 1 ? all : "[" + all + "]");
    return "";
  }

 private:
  // Nodes of other kinds that the request fits, with this feature (empty = any).
  std::vector<std::string> others_that_fit(const Kind& kind, const std::string& feature) const {
    std::vector<std::string> others;
    for (const PartitionNode& node : partition_.all) {
      if (kind_of(node) == kind || !has_gpus(node, component_.gres)) continue;
      if (feature.empty() || contains(node.features, feature)) others.push_back(node.name);
    }
    return others;
  }

  // One that all of these nodes have, and no node of another kind that the request fits.
  std::optional<std::string> feature_of(const Kind& kind, const Members& members) const {
    for (const std::string& feature : members.front()->features) {
      const bool common = std::all_of(members.begin(), members.end(), [&](const PartitionNode* node) {
        return contains(node->features, feature);
      });
      if (common && others_that_fit(kind, feature).empty()) return feature;
    }
    return std::nullopt;
  }

  std::string indistinct(const Kind& kind, const Members& members, bool has_constraint) const {
    return fmt::format("a request for {} in partition {} fits {} too, and {}", members.front()->name,
                       partition_.name, others_that_fit(kind, "").front(),
                       has_constraint ? "--constraint is given" : "no feature distinguishes them");
  }

  void add_group(const Members& members, JobShape& shape) const {
    NodeGroup group;
    for (const PartitionNode* node : members) group.planned.push_back(node->name);
    for (const PartitionNode& node : partition_.all)
      if (kind_of(node) == kind_of(*members.front())) group.equal.push_back(node.name);
    shape.groups.push_back(std::move(group));
  }

  const Component& component_;
  const LivePartition& partition_;
  std::map<Kind, Members> kinds_;
  size_t known_ = 0;
};

// Which component has a node must be evident from the node, unless all take as much of it.
bool overlap(const JobShape& shape) {
  std::set<std::string> seen;
  for (const NodeGroup& group : shape.groups)
    for (const std::string& name : group.equal)
      if (!seen.insert(name).second) return true;
  return false;
}

}  // namespace

JobShape shape_of(const std::vector<Component>& components, const LiveCluster& cluster, bool has_constraint) {
  JobShape shape;
  for (const Component& component : components) {
    const auto partition =
        std::find_if(cluster.partitions.begin(), cluster.partitions.end(),
                     [&](const LivePartition& other) { return other.name == component.partition; });
    shape.why_not = ShapeOfComponent(component, *partition).add_to(shape, has_constraint);
    if (!shape.why_not.empty()) return shape;
  }
  if (overlap(shape)) shape.why_not = "its components take different parts of equal nodes";
  return shape;
}

}  // namespace sailor
