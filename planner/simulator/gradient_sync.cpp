#include "planner/simulator/gradient_sync.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "planner/profile/collectives.h"

namespace sailor::native {
namespace {

// What one rank of the group holds, the largest over the pipelines' TP degrees.
struct Shard {
  double parameters = 0;
  double lowest_parameters = 0;  // of the lowest layer
  int layers = 0;
  // With unlike TP degrees a rank of the lowest sums this many parts of a layer, each with the ranks that
  // hold it.
  int parts = 1;
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

const CompactStage& member(const CompactPlan& plan, const PlanClasses& classes, const LayerGroup& group,
                           int pipeline) {
  const auto of_class = static_cast<size_t>(classes.of_pipeline[static_cast<size_t>(pipeline)]);
  return plan.of(pipeline)[static_cast<size_t>(group.stage_of[of_class])];
}

// The order of pipelines in a group's ring: like NCCL's, it enters and leaves every node once, and the nodes
// are in the order in which the group's ranks name them first. Keeps memory for the next group.
class RingOrder {
 public:
  explicit RingOrder(int nodes) : last_(static_cast<size_t>(nodes), -1) {}

  // Valid until the next call.
  const std::vector<int>& of(const CompactPlan& plan, const PlanClasses& classes, const LayerGroup& group) {
    const int D = plan.pipelines();
    next_.assign(static_cast<size_t>(D), -1);
    first_.clear();
    nodes_.clear();
    bool in_order = true;
    int before = -1;
    for (int j = 0; j < D; ++j) {
      const int node = member(plan, classes, group, j).node;
      if (node < 0 || last_[static_cast<size_t>(node)] < 0) {
        first_.push_back(j);
        if (node >= 0) nodes_.push_back(node);
      } else {
        next_[static_cast<size_t>(last_[static_cast<size_t>(node)])] = j;
        in_order = in_order && node == before;
      }
      if (node >= 0) last_[static_cast<size_t>(node)] = j;
      before = node;
    }
    for (const int node : nodes_) last_[static_cast<size_t>(node)] = -1;
    order_.resize(static_cast<size_t>(D));
    if (in_order) {
      std::iota(order_.begin(), order_.end(), 0);
      return order_;
    }
    auto at = order_.begin();
    for (const int first : first_)
      for (int j = first; j >= 0; j = next_[static_cast<size_t>(j)]) *at++ = j;
    return order_;
  }

 private:
  std::vector<int> last_;           // by node: the last pipeline there so far; -1 between calls
  std::vector<int> next_;           // by pipeline: the next one on its node
  std::vector<int> first_, nodes_;  // the first pipeline of each node; the nodes
  std::vector<int> order_;
};

// Parameters of the group's layers, of a whole replica. Tied matrices are one where the same ranks hold both.
double whole_parameters(const CompactPlan& plan, const PlanClasses& classes, const LayerGroup& group,
                        const StageKinds& kinds) {
  const int kind = member(plan, classes, group, 0).kind;
  const std::vector<LayerSizes>& sizes = *kinds[kind].sizes;
  double parameters = kinds.parameters(kind, group.first_layer, group.end_layer);
  if (group.first_layer == 0 && group.end_layer == static_cast<int>(sizes.size()))
    parameters -= static_cast<double>(sizes.back().tied_parameters);
  return parameters * kinds.shape(kind).parts();
}

// Bytes that sums and gathers move per parameter and iteration, were there infinitely many replicas: a
// replica of R sends (R - 1) / R of it along a ring, and over a mesh 1 / R to each of the others.
double moved_bytes(const CompactPlan& plan, const PlanningContext& context) {
  const FrameworkStyle& style = context.framework;
  const Precision precision = context.precision;
  const double gradients = style.sync_bytes_at(precision), weights = style.weight_bytes(precision);
  const Zero zero = std::max(plan.zero, style.zero);
  if (zero == Zero::none) return 2 * gradients;
  if (zero >= Zero::gradients) {
    const int rounds = *std::max_element(plan.microbatches.begin(), plan.microbatches.end());
    return rounds * gradients + (zero >= Zero::parameters ? 2 * rounds : 1) * weights;
  }
  const bool all_reduce = style.zero1_all_reduce && style.sums != FrameworkStyle::Sums::mesh;
  return (all_reduce ? 2 : 1) * gradients + weights;
}

// Adds `gb` from a replica of one kind to one of another.
void add_traffic(StageKinds& kinds, int from, int to, double gb, PerExpense<Spent>& spent) {
  const PerExpense<double>& per_gb = kinds.traffic_per_gb(from, to);
  for (const Expense expense : kExpenses) spent[expense].traffic += per_gb[expense] * gb;
}

class Rings {
 public:
  Rings(const CompactPlan& plan, const PlanClasses& classes, const std::vector<LayerGroup>& groups,
        StageKinds& kinds)
      : plan_(plan),
        classes_(classes),
        kinds_(kinds),
        context_(kinds.context()),
        rings_(static_cast<size_t>(plan.nodes), 0),
        seen_(static_cast<size_t>(plan.nodes), 0),
        order_(plan.nodes) {
    count_rings(groups);
  }

  SyncTimes times(const LayerGroup& group) {
    const FrameworkStyle& style = context_.framework;
    const Precision precision = context_.precision;
    const Links links = links_of(group);
    const Shard shard = shard_of(group);
    const double bytes = shard.parameters * style.sync_bytes_at(precision);
    // A bucket ends with a tensor or a layer, so there are no more of them than these.
    const double tensors = std::max(1.0, style.tensors_per_layer * shard.layers);
    const double layer_parts = std::max(1, shard.layers * shard.parts);
    const double most_buckets = style.sync_whole_layers ? layer_parts : tensors;
    const Zero zero = std::max(plan_.zero, style.zero);
    const bool by_layer = zero >= Zero::gradients;
    const double buckets =
        by_layer
            ? layer_parts
            : std::clamp(std::floor(bytes / static_cast<double>(style.sync_bucket_bytes)), 1.0, most_buckets);
    double slowdown = 1;
    for (size_t c = 0; c < classes_.pipelines.size() && links.ring.nodes > 1; ++c)
      slowdown = std::max(slowdown, kinds_[any_of(group, c).kind].profile->overheads.sync_slowdown);
    SyncTimes times;
    const bool sharded = shards_optimizer(zero);
    const auto sum_s = [&](double piece) {
      return slowdown * links.slowest_s([&](const Ring& ring) {
        if (by_layer || (sharded && !style.zero1_all_reduce)) return ring_pass_s(ring, piece);
        return style.tree_sync ? all_reduce_s(ring, piece) : ring_all_reduce_s(ring, piece);
      });
    };
    times.reduce_s = buckets * sum_s(bytes / buckets);
    const double lowest = shard.lowest_parameters * style.sync_bytes_at(precision);
    if (by_layer) {
      times.last_s = std::min(times.reduce_s, sum_s(lowest));
    } else if (style.sync_whole_layers) {
      const auto least = static_cast<double>(style.sync_bucket_bytes);
      times.last_s = std::min(times.reduce_s, sum_s(std::clamp(least, std::min(lowest, bytes), bytes)));
    }
    if (sharded) {
      const double weights = shard.parameters * style.weight_bytes(precision);
      const double pieces = zero >= Zero::parameters  ? layer_parts
                            : style.gathers_by_tensor ? tensors
                                                      : buckets;
      times.gather_s = slowdown * pieces *
                       links.slowest_s([&](const Ring& ring) { return ring_pass_s(ring, weights / pieces); });
    }
    return times;
  }

 private:
  const CompactStage& stage_of(const LayerGroup& group, int pipeline) const {
    return member(plan_, classes_, group, pipeline);
  }
  // That of the first pipeline of a class; the others differ in their nodes.
  const CompactStage& any_of(const LayerGroup& group, size_t of_class) const {
    return stage_of(group, classes_.pipelines[of_class].pipeline);
  }

  Shard shard_of(const LayerGroup& group) const {
    Shard shard{.layers = group.end_layer - group.first_layer};
    int most_parts = 1, fewest_parts = std::numeric_limits<int>::max();
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
      const int parts = kinds_.shape(kind).parts();
      most_parts = std::lcm(most_parts, parts);
      fewest_parts = std::min(fewest_parts, parts);
    }
    shard.parts = most_parts / fewest_parts;
    return shard;
  }

  bool spans_nodes(const LayerGroup& group) const {
    for (int j = 1; j < plan_.pipelines(); ++j)
      if (!on_one_node(stage_of(group, j), stage_of(group, j - 1))) return true;
    return false;
  }

  // How many rings leave each node at the same time, if everything sums at once: one for every part of the
  // weights of every group of GPUs that has members elsewhere. What the same GPUs sum, they sum one after the
  // other.
  void count_rings(const std::vector<LayerGroup>& groups) {
    size_t most_groups = 0;
    for (const PipelineClass& of : classes_.pipelines)
      most_groups = std::max(most_groups, plan_.groups(of.pipeline));
    // Do they send to other nodes? [class of pipelines][group of GPUs]
    std::vector<char> leaves(classes_.pipelines.size() * most_groups, 0);
    for (const LayerGroup& group : groups) {
      if (!spans_nodes(group)) continue;
      for (size_t c = 0; c < classes_.pipelines.size(); ++c)
        leaves[c * most_groups +
               static_cast<size_t>(group.stage_of[c]) % plan_.groups(classes_.pipelines[c].pipeline)] = 1;
    }
    std::vector<int> parts(rings_.size(), 0), nodes;  // of replicas on a node: the most
    for (size_t g = 0; g < most_groups; ++g) {
      nodes.clear();
      for (size_t j = 0; j < classes_.of_pipeline.size(); ++j) {
        if (!leaves[static_cast<size_t>(classes_.of_pipeline[j]) * most_groups + g]) continue;
        const CompactStage& stage = plan_.stages[static_cast<size_t>(plan_.first[j]) + g];
        if (stage.node < 0) continue;
        int& most = parts[static_cast<size_t>(stage.node)];
        if (most == 0) nodes.push_back(stage.node);
        most = std::max(most, kinds_.shape(stage.kind).parts());
      }
      for (const int node : nodes) {
        rings_[static_cast<size_t>(node)] += parts[static_cast<size_t>(node)];
        parts[static_cast<size_t>(node)] = 0;
      }
    }
  }

  Links links_of(const LayerGroup& group) {
    const int D = plan_.pipelines();
    Links links;
    links.ring.ranks = 0;
    for (int j = 0; j < D; ++j) {
      const int kind = stage_of(group, j).kind, copies = kinds_.shape(kind).copies();
      links.ring.ranks += copies;
      if (copies > 1) add_distinct(links.intra, kinds_.link(kind, kind, true));
    }
    if (D == 1) return links;
    const std::vector<int>& order = order_.of(plan_, classes_, group);
    ++groups_seen_;
    int from = -1, to = -1;  // kinds of the link before
    bool was_near = false;
    const CompactStage* a = &stage_of(group, order[0]);
    for (int i = 0; i < D; ++i) {
      const CompactStage& b = stage_of(group, order[static_cast<size_t>(i + 1 < D ? i + 1 : 0)]);
      const bool near = on_one_node(*a, b);
      if (a->kind != from || b.kind != to || near != was_near)
        add_distinct(near ? links.intra : links.inter, kinds_.link(a->kind, b.kind, near));
      from = a->kind;
      to = b.kind;
      was_near = near;
      if (a->node < 0) {
        links.ring.sharing = std::max<double>(links.ring.sharing, kinds_.shape(a->kind).parts());
        ++links.ring.nodes;
      } else if (int& seen = seen_[static_cast<size_t>(a->node)]; seen != groups_seen_) {
        seen = groups_seen_;
        ++links.ring.nodes;
        if (const double rings = rings_[static_cast<size_t>(a->node)]; rings > 0)
          links.ring.sharing = std::max(links.ring.sharing, rings);
      }
      a = &b;
    }
    --links.ring.nodes;  // a ring begins with one
    return links;
  }

  const CompactPlan& plan_;
  const PlanClasses& classes_;
  StageKinds& kinds_;
  const PlanningContext& context_;
  std::vector<double> rings_;  // by node
  std::vector<int> seen_;      // by node: the last group with a member there, by number
  int groups_seen_ = 0;
  RingOrder order_;
};

}  // namespace

std::vector<SyncTimes> sync_times(const CompactPlan& plan, const PlanClasses& classes,
                                  const std::vector<LayerGroup>& groups, StageKinds& kinds) {
  std::vector<SyncTimes> times(groups.size());
  if (!has_replicas(plan, kinds)) return times;
  Rings rings(plan, classes, groups, kinds);
  for (size_t g = 0; g < groups.size(); ++g) times[g] = rings.times(groups[g]);
  return times;
}

void add_sync_traffic(const CompactPlan& plan, const PlanClasses& classes,
                      const std::vector<LayerGroup>& groups, StageKinds& kinds, PerExpense<Spent>& spent) {
  const int D = plan.pipelines();
  if (D < 2) return;
  const PlanningContext& context = kinds.context();
  const bool mesh = context.framework.sums == FrameworkStyle::Sums::mesh;
  const double bytes = moved_bytes(plan, context) / 1e9;
  RingOrder ring(plan.nodes);
  for (const LayerGroup& group : groups) {
    const int R = sharers(plan, kinds, group.first_layer, group.end_layer);
    const double gb = whole_parameters(plan, classes, group, kinds) * bytes / R;
    if (!mesh) {
      const std::vector<int>& order = ring.of(plan, classes, group);
      for (int j = 0; j < D; ++j)
        add_traffic(kinds, member(plan, classes, group, order[static_cast<size_t>(j)]).kind,
                    member(plan, classes, group, order[static_cast<size_t>((j + 1) % D)]).kind, gb * (R - 1),
                    spent);
      continue;
    }
    for (const PipelineClass& a : classes.pipelines)
      for (const PipelineClass& b : classes.pipelines) {
        const int from = member(plan, classes, group, a.pipeline).kind,
                  to = member(plan, classes, group, b.pipeline).kind;
        const double pairs = a.count * (b.count - (&a == &b ? 1.0 : 0.0)) * kinds.shape(from).copies() *
                             kinds.shape(to).copies();
        add_traffic(kinds, from, to, pairs * gb, spent);
      }
  }
}

}  // namespace sailor::native
