#include "planner/simulator/gradient_sync.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <set>
#include <string>

#include "planner/simulator/cost.h"

namespace sailor::native {
namespace {

// What one rank of the group holds, the largest over the pipelines' TP degrees.
struct Shard {
  double parameters = 0;
  int layers = 0;
};

const PlanStage& stage_of(const Plan& plan, const LayerGroup& group, size_t pipeline) {
  return plan.pipelines[pipeline].stages[static_cast<size_t>(group.stage_of[pipeline])];
}

Shard shard_of(const PlanningContext& context, const Plan& plan, const LayerGroup& group) {
  std::set<int> degrees;
  for (size_t j = 0; j < plan.pipelines.size(); ++j) degrees.insert(stage_of(plan, group, j).tp);
  Shard shard{0, group.end_layer - group.first_layer};
  for (int tp : degrees) {
    const std::vector<LayerSizes>& sizes = sizes_of(context, tp);
    double parameters = 0;
    for (int layer = group.first_layer; layer < group.end_layer; ++layer)
      parameters += static_cast<double>(sizes.at(static_cast<size_t>(layer)).parameters);
    // Tied matrices are one where the same ranks hold both.
    if (group.first_layer == 0 && group.end_layer == static_cast<int>(sizes.size()))
      parameters -= static_cast<double>(sizes.back().tied_parameters);
    shard.parameters = std::max(shard.parameters, parameters);
  }
  return shard;
}

bool spans_nodes(const Plan& plan, const LayerGroup& group) {
  for (size_t j = 1; j < plan.pipelines.size(); ++j)
    if (!on_one_node(stage_of(plan, group, j), stage_of(plan, group, j - 1))) return true;
  return false;
}

// How many rings leave each node at the same time, if everything sums at once: every TP rank of every group
// of GPUs that has members elsewhere. What the same GPUs sum, they sum one after the other.
std::map<std::string, double> rings_by_node(const Plan& plan, const std::vector<LayerGroup>& groups) {
  std::map<std::string, std::map<int, int>> tp_of;  // by node and stage, the most of the replicas there
  for (const LayerGroup& group : groups) {
    if (!spans_nodes(plan, group)) continue;
    for (size_t j = 0; j < plan.pipelines.size(); ++j) {
      const PlanStage& stage = stage_of(plan, group, j);
      if (stage.node.empty()) continue;
      const int gpus = group.stage_of[j] %
                       (static_cast<int>(plan.pipelines[j].stages.size()) / std::max(1, plan.interleave));
      int& tp = tp_of[stage.node][gpus];
      tp = std::max(tp, stage.tp);
    }
  }
  std::map<std::string, double> rings;
  for (const auto& [node, stages] : tp_of)
    for (const auto& [stage, tp] : stages) rings[node] += tp;
  return rings;
}

// A group's ring, but for its links: of each kind, all that differ.
struct Links {
  Ring ring;
  std::vector<const LinkCurve*> intra, inter;

  // The slowest combination: every step waits for the slowest link.
  template <typename Time>
  double slowest_s(Time time_s) const {
    double slowest = 0;
    Ring one = ring;
    for (size_t i = 0; i < std::max<size_t>(1, intra.size()); ++i)
      for (size_t e = 0; e < std::max<size_t>(1, inter.size()); ++e) {
        one.intra = intra.empty() ? nullptr : intra[i];
        one.inter = inter.empty() ? nullptr : inter[e];
        slowest = std::max(slowest, time_s(one));
      }
    return slowest;
  }
};

void add_distinct(std::vector<const LinkCurve*>& links, const LinkCurve& link) {
  if (std::find(links.begin(), links.end(), &link) == links.end()) links.push_back(&link);
}

Links links_of(const PlanningContext& context, const Plan& plan, const LayerGroup& group,
               const std::map<std::string, double>& rings) {
  const size_t D = plan.pipelines.size();
  Links links;
  links.ring.ranks = static_cast<int>(D);
  std::set<std::string> nodes;
  int unplaced = 0;
  for (size_t j = 0; j < D; ++j) {
    const PlanStage& stage = stage_of(plan, group, j);
    if (stage.node.empty()) {
      ++unplaced;
      links.ring.sharing = std::max<double>(links.ring.sharing, stage.tp);
      continue;
    }
    nodes.insert(stage.node);
    if (const auto sharing = rings.find(stage.node); sharing != rings.end())
      links.ring.sharing = std::max(links.ring.sharing, sharing->second);
  }
  links.ring.nodes = static_cast<int>(nodes.size()) + unplaced;
  for (size_t j = 0; j < D; ++j) {
    const PlanStage& a = stage_of(plan, group, j);
    const PlanStage& b = stage_of(plan, group, (j + 1) % D);
    const bool same_node = on_one_node(a, b);
    add_distinct(same_node ? links.intra : links.inter,
                 link_of(context, link_end(a, a.tp), link_end(b, b.tp), same_node));
  }
  return links;
}

SyncTimes group_times(const PlanningContext& context, const Plan& plan, const LayerGroup& group,
                      const std::map<std::string, double>& rings) {
  const FrameworkStyle& style = context.framework;
  const Precision precision = context.job.training.precision;
  const Links links = links_of(context, plan, group, rings);
  const Shard shard = shard_of(context, plan, group);
  const double bytes = shard.parameters * style.sync_bytes_at(precision);
  // A bucket ends with a tensor, so there are no more of them than tensors.
  const double tensors = std::max(1.0, style.tensors_per_layer * shard.layers);
  const double buckets =
      std::clamp(std::floor(bytes / static_cast<double>(style.sync_bucket_bytes)), 1.0, tensors);
  double slowdown = 1;
  for (size_t j = 0; j < plan.pipelines.size() && links.ring.nodes > 1; ++j)
    slowdown =
        std::max(slowdown, profile_of(context, stage_of(plan, group, j).gpu_type).overheads.sync_slowdown);
  SyncTimes times;
  const bool sharded = plan.zero1 || style.zero1;
  const double piece = bytes / buckets;
  const double sum_s = links.slowest_s([&](const Ring& ring) {
    if (sharded && !style.zero1_all_reduce) return ring_pass_s(ring, piece);
    return style.tree_sync ? all_reduce_s(ring, piece) : ring_all_reduce_s(ring, piece);
  });
  times.reduce_s = slowdown * buckets * sum_s;
  if (sharded) {
    const double weights = shard.parameters * style.weight_bytes(precision);
    const double pieces = style.gathers_by_tensor ? tensors : buckets;
    times.gather_s = slowdown * pieces *
                     links.slowest_s([&](const Ring& ring) { return ring_pass_s(ring, weights / pieces); });
  }
  return times;
}

}  // namespace

std::vector<LayerGroup> layer_groups(const Plan& plan) {
  std::set<int> cuts;
  for (const PlanPipeline& pipeline : plan.pipelines)
    for (const PlanStage& stage : pipeline.stages) {
      cuts.insert(stage.first_layer);
      cuts.insert(stage.end_layer);
    }
  std::vector<LayerGroup> groups;
  std::vector<int> stage_of(plan.pipelines.size(), 0);
  for (auto cut = cuts.begin(); std::next(cut) != cuts.end(); ++cut) {
    for (size_t j = 0; j < plan.pipelines.size(); ++j)
      while (plan.pipelines[j].stages.at(static_cast<size_t>(stage_of[j])).end_layer <= *cut) ++stage_of[j];
    groups.push_back({*cut, *std::next(cut), stage_of});
  }
  return groups;
}

std::vector<SyncTimes> sync_times(const PlanningContext& context, const Plan& plan,
                                  const std::vector<LayerGroup>& groups) {
  std::vector<SyncTimes> times(groups.size());
  if (plan.pipelines.size() < 2) return times;
  const std::map<std::string, double> rings = rings_by_node(plan, groups);
  for (size_t g = 0; g < groups.size(); ++g) times[g] = group_times(context, plan, groups[g], rings);
  return times;
}

double sync_usd(const PlanningContext& context, const Plan& plan, const std::vector<LayerGroup>& groups) {
  const size_t D = plan.pipelines.size();
  if (D < 2) return 0;
  const double bytes_each = context.framework.sync_bytes_at(context.job.training.precision);
  double usd = 0;
  for (const LayerGroup& group : groups)
    for (size_t j = 0; j < D; ++j) {
      const PlanStage& from = stage_of(plan, group, j);
      const PlanStage& to = stage_of(plan, group, (j + 1) % D);
      const double price = egress_usd_per_gb(context.snapshot, from.zone, to.zone);
      if (price <= 0) continue;
      double gb = 0;
      for (int layer = group.first_layer; layer < group.end_layer; ++layer)
        gb += static_cast<double>(sizes_of(context, from.tp).at(static_cast<size_t>(layer)).parameters) *
              from.tp * bytes_each / 1e9;
      usd += price * gb * 2 * static_cast<double>(D - 1) / static_cast<double>(D);
    }
  return usd;
}

}  // namespace sailor::native
