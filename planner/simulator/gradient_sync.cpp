#include "planner/simulator/gradient_sync.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>

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

// Pipelines whose ranks sum along one ring, of rings that sum at the same time.
using RingMembers = std::vector<std::vector<int>>;

// Those that share states.
RingMembers sharing_rings(const CompactPlan& plan) {
  RingMembers rings(static_cast<size_t>(num_zero_groups(plan)));
  for (int j = 0; j < plan.pipelines(); ++j) rings[static_cast<size_t>(zero_group_of(plan, j))].push_back(j);
  return rings;
}

// Those with the same place in all groups.
RingMembers copies_rings(const CompactPlan& plan) {
  RingMembers rings(static_cast<size_t>(plan.zero_group));
  for (int j = 0; j < plan.pipelines(); ++j) rings[static_cast<size_t>(j % plan.zero_group)].push_back(j);
  return rings;
}

// The order of pipelines in a group's ring: like NCCL's, it enters and leaves every node once, and the nodes
// are in the order in which the group's ranks name them first. Keeps memory for the next group.
class RingOrder {
 public:
  explicit RingOrder(int nodes) : last_(static_cast<size_t>(nodes), -1) {}

  // Valid until the next call.
  const std::vector<int>& of(const CompactPlan& plan, const PlanClasses& classes, const LayerGroup& group,
                             const std::vector<int>& members) {
    next_.assign(static_cast<size_t>(plan.pipelines()), -1);
    first_.clear();
    nodes_.clear();
    bool in_order = true;
    int before = -1;
    for (const int j : members) {
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
    if (in_order) return members;
    order_.resize(members.size());
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

// Rings that sum the same layers at the same time.
class Rings {
 public:
  // `copies`: each rank has a ring of its own, with those that have the same place in other groups of
  // pipelines; otherwise the CP ranks of a stage are members of one.
  Rings(const CompactPlan& plan, const PlanClasses& classes, const std::vector<LayerGroup>& groups,
        StageKinds& kinds, RingMembers members, bool copies)
      : plan_(plan),
        classes_(classes),
        kinds_(kinds),
        members_(std::move(members)),
        copies_(copies),
        rings_(static_cast<size_t>(plan.nodes), 0),
        seen_(static_cast<size_t>(plan.nodes), 0),
        order_(plan.nodes) {
    count_rings(groups);
  }

  // The next times are those of this group.
  void set(const LayerGroup& group) {
    links_.clear();
    for (const std::vector<int>& members : members_) links_.push_back(links_of(group, members));
    slowdown_ = 1;
    for (size_t c = 0; c < classes_.pipelines.size(); ++c) {
      const int kind = member(plan_, classes_, group, classes_.pipelines[c].pipeline).kind;
      slowdown_ = std::max(slowdown_, kinds_[kind].profile->overheads.sync_slowdown);
    }
  }

  // Of the slowest ring, from the time of one.
  template <typename Time>
  double slowest_s(Time time_s) const {
    double slowest = 0;
    for (const Links& links : links_)
      slowest = std::max(slowest, (links.ring.nodes > 1 ? slowdown_ : 1) * links.slowest_s(time_s));
    return slowest;
  }

 private:
  const CompactStage& stage_of(const LayerGroup& group, int pipeline) const {
    return member(plan_, classes_, group, pipeline);
  }
  // Of a group of GPUs, those that have rings of their own.
  int rings_of(int kind) const { return copies_ ? kinds_.shape(kind).gpus() : kinds_.shape(kind).parts(); }

  bool spans_nodes(const LayerGroup& group, const std::vector<int>& members) const {
    for (size_t i = 1; i < members.size(); ++i)
      if (!on_one_node(stage_of(group, members[i]), stage_of(group, members[i - 1]))) return true;
    return false;
  }

  // How many rings leave each node at the same time, if everything sums at once: one for every part of the
  // weights of every group of GPUs that has members elsewhere. What the same GPUs sum, they sum one after the
  // other.
  void count_rings(const std::vector<LayerGroup>& groups) {
    size_t most_groups = 0;
    for (const PipelineClass& of : classes_.pipelines)
      most_groups = std::max(most_groups, plan_.groups(of.pipeline));
    std::vector<int> parts(rings_.size(), 0), nodes;  // of replicas on a node: the most
    std::vector<char> leaves;  // Do they send to other nodes? [class of pipelines][group of GPUs]
    for (const std::vector<int>& members : members_) {
      leaves.assign(classes_.pipelines.size() * most_groups, 0);
      for (const LayerGroup& group : groups) {
        if (!spans_nodes(group, members)) continue;
        for (size_t c = 0; c < classes_.pipelines.size(); ++c)
          leaves[c * most_groups +
                 static_cast<size_t>(group.stage_of[c]) % plan_.groups(classes_.pipelines[c].pipeline)] = 1;
      }
      for (size_t g = 0; g < most_groups; ++g) {
        nodes.clear();
        for (const int j : members) {
          const auto c = static_cast<size_t>(classes_.of_pipeline[static_cast<size_t>(j)]);
          if (!leaves[c * most_groups + g]) continue;
          const CompactStage& stage =
              plan_.stages[static_cast<size_t>(plan_.first[static_cast<size_t>(j)]) + g];
          if (stage.node < 0) continue;
          int& most = parts[static_cast<size_t>(stage.node)];
          if (most == 0) nodes.push_back(stage.node);
          most = std::max(most, rings_of(stage.kind));
        }
        for (const int node : nodes) {
          rings_[static_cast<size_t>(node)] += parts[static_cast<size_t>(node)];
          parts[static_cast<size_t>(node)] = 0;
        }
      }
    }
  }

  Links links_of(const LayerGroup& group, const std::vector<int>& members) {
    Links links;
    links.ring.ranks = 0;
    for (const int j : members) {
      const int kind = stage_of(group, j).kind, copies = copies_ ? 1 : kinds_.shape(kind).copies();
      links.ring.ranks += copies;
      if (copies > 1) add_distinct(links.intra, kinds_.link(kind, kind, true));
    }
    if (members.size() == 1) return links;
    const std::vector<int>& order = order_.of(plan_, classes_, group, members);
    ++groups_seen_;
    int from = -1, to = -1;  // kinds of the link before
    bool was_near = false;
    const CompactStage* a = &stage_of(group, order[0]);
    for (size_t i = 0; i < order.size(); ++i) {
      const CompactStage& b = stage_of(group, order[i + 1 < order.size() ? i + 1 : 0]);
      const bool near = on_one_node(*a, b);
      if (a->kind != from || b.kind != to || near != was_near)
        add_distinct(near ? links.intra : links.inter, kinds_.link(a->kind, b.kind, near));
      from = a->kind;
      to = b.kind;
      was_near = near;
      if (a->node < 0) {
        links.ring.sharing = std::max<double>(links.ring.sharing, rings_of(a->kind));
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
  const RingMembers members_;
  const bool copies_;
  std::vector<double> rings_;  // by node
  std::vector<int> seen_;      // by node: the last group with a member there, by number
  int groups_seen_ = 0;
  RingOrder order_;
  std::vector<Links> links_;  // by ring, of the newest group
  double slowdown_ = 1;
};

Shard shard_of(const CompactPlan& plan, const PlanClasses& classes, const LayerGroup& group,
               const StageKinds& kinds) {
  Shard shard{.layers = group.end_layer - group.first_layer};
  int most_parts = 1, fewest_parts = std::numeric_limits<int>::max();
  for (const PipelineClass& of : classes.pipelines) {
    const int kind = member(plan, classes, group, of.pipeline).kind;
    const std::vector<LayerSizes>& sizes = *kinds[kind].sizes;
    double parameters = kinds.parameters(kind, group.first_layer, group.end_layer);
    // Tied matrices are one where the same ranks hold both.
    if (group.first_layer == 0 && group.end_layer == static_cast<int>(sizes.size()))
      parameters -= static_cast<double>(sizes.back().tied_parameters);
    shard.parameters = std::max(shard.parameters, parameters);
    shard.lowest_parameters =
        std::max(shard.lowest_parameters, kinds.parameters(kind, group.first_layer, group.first_layer + 1));
    const int parts = kinds.shape(kind).parts();
    most_parts = std::lcm(most_parts, parts);
    fewest_parts = std::min(fewest_parts, parts);
  }
  shard.parts = most_parts / fewest_parts;
  return shard;
}

// `sharing` and `copies`, unless that is null, are those of the group; `sharers` share states.
SyncTimes times_of(const Shard& shard, Zero zero, const Rings& sharing, const Rings* copies, int sharers,
                   const PlanningContext& context) {
  const FrameworkStyle& style = context.framework;
  const Precision precision = context.precision;
  const double bytes = shard.parameters * style.sync_bytes_at(precision);
  // A bucket ends with a tensor or a layer, so there are no more of them than these.
  const double tensors = std::max(1.0, style.tensors_per_layer * shard.layers);
  const double layer_parts = std::max(1, shard.layers * shard.parts);
  const double most_buckets = style.sync_whole_layers ? layer_parts : tensors;
  const bool sharded = shards_optimizer(zero), by_layer = zero >= Zero::gradients;
  const double buckets =
      by_layer
          ? layer_parts
          : std::clamp(std::floor(bytes / static_cast<double>(style.sync_bucket_bytes)), 1.0, most_buckets);
  const auto all_reduced_s = [&](const Ring& ring, double piece) {
    return style.tree_sync ? all_reduce_s(ring, piece) : ring_all_reduce_s(ring, piece);
  };
  const auto copies_s = [&](double piece) {
    if (copies == nullptr) return 0.0;
    return copies->slowest_s([&](const Ring& ring) { return all_reduced_s(ring, piece / sharers); });
  };
  const auto sum_s = [&](double piece) {
    return (by_layer ? 0 : copies_s(piece)) + sharing.slowest_s([&](const Ring& ring) {
      return by_layer || (sharded && !style.zero1_all_reduce) ? ring_pass_s(ring, piece)
                                                              : all_reduced_s(ring, piece);
    });
  };
  SyncTimes times;
  times.reduce_s = buckets * sum_s(bytes / buckets);
  const double lowest = shard.lowest_parameters * style.sync_bytes_at(precision);
  if (by_layer) {
    times.last_s = std::min(times.reduce_s, sum_s(lowest));
    times.copies_s = buckets * copies_s(bytes / buckets);
  } else if (style.sync_whole_layers) {
    const auto least = static_cast<double>(style.sync_bucket_bytes);
    times.last_s = std::min(times.reduce_s, sum_s(std::clamp(least, std::min(lowest, bytes), bytes)));
  }
  if (sharded) {
    const double weights = shard.parameters * style.weight_bytes(precision);
    const double pieces = zero >= Zero::parameters  ? layer_parts
                          : style.gathers_by_tensor ? tensors
                                                    : buckets;
    times.gather_s =
        pieces * sharing.slowest_s([&](const Ring& ring) { return ring_pass_s(ring, weights / pieces); });
  }
  return times;
}

// Adds what a ring sends, `gb` from each of its members.
void add_ring(const CompactPlan& plan, const PlanClasses& classes, const LayerGroup& group,
              const std::vector<int>& order, double gb, StageKinds& kinds, PerExpense<Spent>& spent) {
  for (size_t i = 0; i < order.size(); ++i)
    add_traffic(kinds, member(plan, classes, group, order[i]).kind,
                member(plan, classes, group, order[(i + 1) % order.size()]).kind, gb, spent);
}

}  // namespace

std::vector<SyncTimes> sync_times(const CompactPlan& plan, const PlanClasses& classes,
                                  const std::vector<LayerGroup>& groups, StageKinds& kinds) {
  std::vector<SyncTimes> times(groups.size());
  if (!has_replicas(plan, kinds)) return times;
  Rings sharing(plan, classes, groups, kinds, sharing_rings(plan), false);
  std::optional<Rings> copies;
  if (plan.zero_group > 0) copies.emplace(plan, classes, groups, kinds, copies_rings(plan), true);
  const Zero zero = std::max(plan.zero, kinds.context().framework.zero);
  for (size_t g = 0; g < groups.size(); ++g) {
    sharing.set(groups[g]);
    if (copies) copies->set(groups[g]);
    times[g] = times_of(shard_of(plan, classes, groups[g], kinds), zero, sharing, copies ? &*copies : nullptr,
                        sharers(plan, kinds, groups[g].first_layer, groups[g].end_layer), kinds.context());
  }
  return times;
}

void add_sync_traffic(const CompactPlan& plan, const PlanClasses& classes,
                      const std::vector<LayerGroup>& groups, StageKinds& kinds, PerExpense<Spent>& spent) {
  if (plan.pipelines() < 2) return;
  const PlanningContext& context = kinds.context();
  const bool mesh = context.framework.sums == FrameworkStyle::Sums::mesh;
  const double bytes = moved_bytes(plan, context) / 1e9;
  const RingMembers sharing = sharing_rings(plan),
                    copies = plan.zero_group > 0 ? copies_rings(plan) : RingMembers();
  const int num_copies = num_zero_groups(plan);
  RingOrder ring(plan.nodes);
  for (const LayerGroup& group : groups) {
    const int R = sharers(plan, kinds, group.first_layer, group.end_layer);
    const double gb = whole_parameters(plan, classes, group, kinds) / R;
    // What a rank sends to one other over a mesh, and along a ring to the next one for all others.
    const double own_gb = gb * 2 * context.framework.sync_bytes_at(context.precision) / 1e9 / num_copies;
    for (const std::vector<int>& members : copies) {
      const double of_all_gb = own_gb * kinds.shape(member(plan, classes, group, members[0]).kind).copies();
      if (!mesh) {
        add_ring(plan, classes, group, ring.of(plan, classes, group, members), of_all_gb * (num_copies - 1),
                 kinds, spent);
        continue;
      }
      for (const int from : members)
        for (const int to : members)
          if (from != to)
            add_traffic(kinds, member(plan, classes, group, from).kind, member(plan, classes, group, to).kind,
                        of_all_gb, spent);
    }
    if (!mesh) {
      for (const std::vector<int>& members : sharing)
        add_ring(plan, classes, group, ring.of(plan, classes, group, members), gb * bytes * (R - 1), kinds,
                 spent);
      continue;
    }
    for (const PipelineClass& a : classes.pipelines)
      for (const PipelineClass& b : classes.pipelines) {
        if (zero_group_of(plan, a.pipeline) != zero_group_of(plan, b.pipeline)) continue;
        const int from = member(plan, classes, group, a.pipeline).kind,
                  to = member(plan, classes, group, b.pipeline).kind;
        const double pairs = a.count * (b.count - (&a == &b ? 1.0 : 0.0)) * kinds.shape(from).copies() *
                             kinds.shape(to).copies();
        add_traffic(kinds, from, to, pairs * gb * bytes, spent);
      }
  }
}

}  // namespace sailor::native
