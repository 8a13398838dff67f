#include "planner/simulator/gradient_sync.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "planner/profile/collectives.h"

namespace sailor::native {
namespace {

// What one rank of the group holds, the largest over the pipelines' TP degrees.
struct Shard {
  double parameters = 0;
  double lowest_parameters = 0;  // of the lowest layer
  int layers = 0;
};

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

class Rings {
 public:
  Rings(const CompactPlan& plan, const PlanClasses& classes, const std::vector<LayerGroup>& groups,
        StageKinds& kinds)
      : plan_(plan), classes_(classes), kinds_(kinds), context_(kinds.context()) {
    count_rings(groups);
  }

  SyncTimes times(const LayerGroup& group) {
    const FrameworkStyle& style = context_.framework;
    const Precision precision = context_.job.training.precision;
    const Links links = links_of(group);
    const Shard shard = shard_of(group);
    const double bytes = shard.parameters * style.sync_bytes_at(precision);
    // A bucket ends with a tensor or a layer, so there are no more of them than these.
    const double tensors = std::max(1.0, style.tensors_per_layer * shard.layers);
    const double most_buckets = style.sync_whole_layers ? std::max(1, shard.layers) : tensors;
    const double buckets =
        std::clamp(std::floor(bytes / static_cast<double>(style.sync_bucket_bytes)), 1.0, most_buckets);
    double slowdown = 1;
    for (size_t c = 0; c < classes_.pipelines.size() && links.ring.nodes > 1; ++c)
      slowdown = std::max(slowdown, kinds_[any_of(group, c).kind].profile->overheads.sync_slowdown);
    SyncTimes times;
    const bool sharded = shards_optimizer(std::max(plan_.zero, style.zero));
    const auto sum_s = [&](double piece) {
      return slowdown * links.slowest_s([&](const Ring& ring) {
        if (sharded && !style.zero1_all_reduce) return ring_pass_s(ring, piece);
        return style.tree_sync ? all_reduce_s(ring, piece) : ring_all_reduce_s(ring, piece);
      });
    };
    times.reduce_s = buckets * sum_s(bytes / buckets);
    if (style.sync_whole_layers) {
      const double lowest = shard.lowest_parameters * style.sync_bytes_at(precision);
      const auto least = static_cast<double>(style.sync_bucket_bytes);
      times.last_s = std::min(times.reduce_s, sum_s(std::clamp(least, std::min(lowest, bytes), bytes)));
    }
    if (sharded) {
      const double weights = shard.parameters * style.weight_bytes(precision);
      const double pieces = style.gathers_by_tensor ? tensors : buckets;
      times.gather_s = slowdown * pieces *
                       links.slowest_s([&](const Ring& ring) { return ring_pass_s(ring, weights / pieces); });
    }
    return times;
  }

 private:
  const CompactStage& stage_of(const LayerGroup& group, int pipeline) const {
    const auto of_class = static_cast<size_t>(classes_.of_pipeline[static_cast<size_t>(pipeline)]);
    return plan_.of(pipeline)[static_cast<size_t>(group.stage_of[of_class])];
  }
  // That of the first pipeline of a class; the others differ in their nodes.
  const CompactStage& any_of(const LayerGroup& group, size_t of_class) const {
    return stage_of(group, classes_.pipelines[of_class].pipeline);
  }

  Shard shard_of(const LayerGroup& group) const {
    Shard shard{0, 0, group.end_layer - group.first_layer};
    for (size_t c = 0; c < classes_.pipelines.size(); ++c) {
      const int kind = any_of(group, c).kind;
      const std::vector<LayerSizes>& sizes = *kinds_[kind].sizes;
      double parameters = kinds_.parameters(kind, group.first_layer, group.end_layer);
      // Tied matrices are one where the same ranks hold both.
      if (group.first_layer == 0 && group.end_layer == static_cast<int>(sizes.size()))
        parameters -= static_cast<double>(sizes.back().tied_parameters);
      shard.parameters = std::max(shard.parameters, parameters);
      shard.lowest_parameters = std::max(shard.lowest_parameters,
                                         kinds_.parameters(kind, group.first_layer, group.first_layer + 1));
    }
    return shard;
  }

  bool spans_nodes(const LayerGroup& group) const {
    for (int j = 1; j < plan_.pipelines(); ++j)
      if (!on_one_node(stage_of(group, j), stage_of(group, j - 1))) return true;
    return false;
  }

  // How many rings leave each node at the same time, if everything sums at once: every GPU of every group
  // of GPUs that has members elsewhere. What the same GPUs sum, they sum one after the other.
  void count_rings(const std::vector<LayerGroup>& groups) {
    size_t most_groups = 0;
    for (const PipelineClass& of : classes_.pipelines)
      most_groups =
          std::max(most_groups, plan_.of(of.pipeline).size() / static_cast<size_t>(plan_.interleave));
    // The most of the replicas there, [node][group of GPUs].
    std::vector<int> gpus_of(static_cast<size_t>(plan_.nodes) * most_groups, 0);
    for (const LayerGroup& group : groups) {
      if (!spans_nodes(group)) continue;
      for (int j = 0; j < plan_.pipelines(); ++j) {
        const CompactStage& stage = stage_of(group, j);
        if (stage.node < 0) continue;
        const auto of_class = static_cast<size_t>(classes_.of_pipeline[static_cast<size_t>(j)]);
        const size_t gpus = static_cast<size_t>(group.stage_of[of_class]) %
                            (plan_.of(j).size() / static_cast<size_t>(plan_.interleave));
        int& most = gpus_of[static_cast<size_t>(stage.node) * most_groups + gpus];
        most = std::max(most, kinds_[stage.kind].shape.gpus());
      }
    }
    rings_.assign(static_cast<size_t>(plan_.nodes), 0);
    for (size_t i = 0; i < gpus_of.size(); ++i) rings_[i / most_groups] += gpus_of[i];
  }

  // The pipelines in the order of the ring: like NCCL's, it enters and leaves every node once.
  const std::vector<int>& ring_order(const LayerGroup& group) {
    order_.resize(static_cast<size_t>(plan_.pipelines()));
    std::iota(order_.begin(), order_.end(), 0);
    const auto by_node = [&](int a, int b) { return stage_of(group, a).node < stage_of(group, b).node; };
    if (!std::is_sorted(order_.begin(), order_.end(), by_node))
      std::stable_sort(order_.begin(), order_.end(), by_node);
    return order_;
  }

  Links links_of(const LayerGroup& group) {
    const int D = plan_.pipelines();
    Links links;
    links.ring.ranks = D;
    const std::vector<int>& order = ring_order(group);
    std::vector<char> used(static_cast<size_t>(plan_.nodes), 0);
    for (int j = 0; j < D; ++j) {
      const CompactStage& a = stage_of(group, order[static_cast<size_t>(j)]);
      const CompactStage& b = stage_of(group, order[static_cast<size_t>((j + 1) % D)]);
      const bool same_node = on_one_node(a, b);
      add_distinct(same_node ? links.intra : links.inter, kinds_.link(a.kind, b.kind, same_node));
      if (a.node < 0) {
        links.ring.sharing = std::max<double>(links.ring.sharing, kinds_[a.kind].shape.gpus());
        ++links.ring.nodes;
        continue;
      }
      const auto node = static_cast<size_t>(a.node);
      if (rings_[node] > 0) links.ring.sharing = std::max(links.ring.sharing, rings_[node]);
      if (used[node] == 0) ++links.ring.nodes;
      used[node] = 1;
    }
    --links.ring.nodes;  // a ring begins with one
    return links;
  }

  const CompactPlan& plan_;
  const PlanClasses& classes_;
  StageKinds& kinds_;
  const PlanningContext& context_;
  std::vector<double> rings_;  // by node
  std::vector<int> order_;     // of a ring's pipelines
};

}  // namespace

std::vector<SyncTimes> sync_times(const CompactPlan& plan, const PlanClasses& classes,
                                  const std::vector<LayerGroup>& groups, StageKinds& kinds) {
  std::vector<SyncTimes> times(groups.size());
  if (plan.pipelines() < 2) return times;
  Rings rings(plan, classes, groups, kinds);
  for (size_t g = 0; g < groups.size(); ++g) times[g] = rings.times(groups[g]);
  return times;
}

void add_sync_traffic(const CompactPlan& plan, const PlanClasses& classes,
                      const std::vector<LayerGroup>& groups, StageKinds& kinds, PerExpense<Spent>& spent) {
  const int D = plan.pipelines();
  if (D < 2) return;
  // Neighbours in the ring of pipelines, by class; most are alike.
  std::vector<int> pairs(classes.pipelines.size() * classes.pipelines.size(), 0);
  for (int j = 0; j < D; ++j)
    ++pairs[static_cast<size_t>(classes.of_pipeline[static_cast<size_t>(j)]) * classes.pipelines.size() +
            static_cast<size_t>(classes.of_pipeline[static_cast<size_t>((j + 1) % D)])];
  const PlanningContext& context = kinds.context();
  const double bytes_each = context.framework.sync_bytes_at(context.job.training.precision);
  for (size_t pair = 0; pair < pairs.size(); ++pair) {
    if (pairs[pair] == 0) continue;
    const size_t a = pair / classes.pipelines.size(), b = pair % classes.pipelines.size();
    for (const LayerGroup& group : groups) {
      const int from = plan.of(classes.pipelines[a].pipeline)[static_cast<size_t>(group.stage_of[a])].kind;
      const int to = plan.of(classes.pipelines[b].pipeline)[static_cast<size_t>(group.stage_of[b])].kind;
      const double gb = kinds.parameters(from, group.first_layer, group.end_layer) *
                        kinds[from].shape.parts() * bytes_each / 1e9;
      const PerExpense<double>& per_gb = kinds.traffic_per_gb(from, to);
      for (const Expense expense : kExpenses)
        spent[expense].traffic += pairs[pair] * per_gb[expense] * gb * 2 * (D - 1.0) / D;
    }
  }
}

}  // namespace sailor::native
