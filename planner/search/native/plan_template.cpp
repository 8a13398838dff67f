#include "planner/search/native/plan_template.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>
#include <set>

namespace sailor::native {
namespace {

// Replicas of a stage that are placed one after the other.
struct Dealt {
  int pipeline;  // the first
  int replicas;
  int group;
  int option;
  int pool;
  ReplicaShape shape;
};

// The free GPUs of the nodes during an assignment.
class Dealer {
 public:
  Dealer(const Space& space, const std::vector<Dealt>& order, Fill fill)
      : space_(space), together_(fill == Fill::together) {
    free_.reserve(space.nodes.size());
    for (const SpacePool& pool : space.pools) {
      if (pool.joint) continue;
      free_.insert(free_.end(), pool.free.begin(), pool.free.end());
      left_.push_back(pool.gpus);
    }
    first_.assign(space.pools.size(), 0);
    touched_.assign(space.pools.size(), 0);
    if (fill == Fill::even) spread(order);
  }

  // Chooses nodes for the replicas one after the other and calls visit(replica, node) for each; false when
  // there are no more nodes with room, or after a visit that returned false.
  template <typename Visit>
  bool take(const Dealt& group, const Visit& visit) {
    const auto pool = static_cast<size_t>(group.pool);
    const std::vector<int>& nodes = space_.pools[pool].nodes;
    const int gpus = group.shape.gpus();
    size_t& first = first_[pool];
    while (first < nodes.size() && free_[static_cast<size_t>(nodes[first])] == 0) ++first;
    const size_t common = together_
                              ? best_filled(space_.pools[pool], first, touched_[pool], group.replicas * gpus)
                              : nodes.size();
    size_t at = first;
    for (int i = 0; i < group.replicas; ++i) {
      size_t taken = common;
      if (common == nodes.size() || !take_from(nodes[common], gpus)) {
        while (at < nodes.size() && !take_from(nodes[at], gpus)) ++at;
        taken = at;
      }
      if (taken == nodes.size()) return false;
      touched_[pool] = std::max(touched_[pool], taken + 1);
      if (!visit(i, nodes[taken])) return false;
    }
    return true;
  }

 private:
  bool take_from(int node, int gpus) {
    int& free = free_[static_cast<size_t>(node)];
    int& left = left_[static_cast<size_t>(space_.pool_of_node[static_cast<size_t>(node)])];
    if (free < gpus || left < gpus) return false;
    free -= gpus;
    left -= gpus;
    return true;
  }

  // The node with the fewest GPUs left that has enough, the first of several; the number of nodes when there
  // is none. From `touched` on no node has lost GPUs.
  size_t best_filled(const SpacePool& pool, size_t first, size_t touched, int gpus) const {
    const std::vector<int>& nodes = pool.nodes;
    // A pool of several zones shares its nodes, and is not in order.
    const bool in_order = !space_.pools.back().joint;
    const size_t end = in_order ? std::max(first, touched) : nodes.size();
    size_t best = nodes.size();
    int least = std::numeric_limits<int>::max();
    for (size_t i = first; i < end && least > gpus; ++i) {
      const int free = free_[static_cast<size_t>(nodes[i])];
      if (free < gpus || free >= least) continue;
      best = i;
      least = free;
    }
    if (!in_order || least == gpus) return best;
    const auto begin = pool.free.begin() + static_cast<ptrdiff_t>(end);
    const auto enough = std::upper_bound(begin, pool.free.end(), gpus, std::greater<>());
    if (enough == begin || *(enough - 1) >= least) return best;
    return static_cast<size_t>(std::lower_bound(begin, enough, *(enough - 1), std::greater<>()) -
                               pool.free.begin());
  }

  void spread(const std::vector<Dealt>& order) {
    std::vector<int> wanted(space_.pools.size(), 0), degree(space_.pools.size(), 1);
    for (const Dealt& group : order) {
      const auto pool = static_cast<size_t>(group.pool);
      wanted[pool] += group.replicas * group.shape.gpus();
      degree[pool] = std::max(degree[pool], group.shape.gpus());
    }
    for (size_t p = 0; p < wanted.size(); ++p) {
      const SpacePool& pool = space_.pools[p];
      int nodes = 0;
      for (int left = wanted[p]; left > 0 && nodes < static_cast<int>(pool.nodes.size()); ++nodes)
        left -= pool.free[static_cast<size_t>(nodes)];
      if (nodes == 0) continue;
      const int whole = nodes * degree[p];
      const int share = (wanted[p] + whole - 1) / whole * degree[p];
      for (const int node : pool.nodes)
        free_[static_cast<size_t>(node)] = std::min(free_[static_cast<size_t>(node)], share);
    }
  }

  const Space& space_;
  const bool together_;
  std::vector<int> free_;        // by node
  std::vector<int> left_;        // by pool of one zone: within its limit
  std::vector<size_t> first_;    // by pool: all nodes before it are full
  std::vector<size_t> touched_;  // by pool: no node from it on has lost GPUs
};

// GPU groups in the order in which they get their nodes.
std::vector<Dealt> dealing_order(const Space& space, const PlanTemplate& of) {
  std::vector<Dealt> order;
  int first = 0;
  for (const TemplateClass& pipelines : of.classes) {
    const int groups = static_cast<int>(of.groups(pipelines));
    for (int block = 0; block < pipelines.pipelines; block += of.block)
      for (int g = 0; g < groups; ++g) {
        const int number = pipelines.stages[static_cast<size_t>(g)].option;
        const SpaceOption& option = space.options[static_cast<size_t>(number)];
        order.push_back({first + block, std::min(of.block, pipelines.pipelines - block), g, number,
                         option.pool, option.shape});
      }
    first += pipelines.pipelines;
  }
  return order;
}

// Whether these numbers of replicas, by option, are within all limits.
bool within_limits(const Resources& resources, const Space& space, const std::vector<int>& replicas) {
  for (size_t c = 0; c < resources.capacity.size(); ++c) {
    int64_t used = 0;
    for (size_t o = 0; o < replicas.size(); ++o)
      if (replicas[o] > 0)
        used += int64_t{replicas[o]} * resources.use[static_cast<size_t>(space.options[o].in_resources)][c];
    if (used > resources.capacity[c]) return false;
  }
  return true;
}

bool deal(const Space& space, const std::vector<Dealt>& order, const PlanTemplate& of, CompactPlan& plan) {
  std::vector<int> replicas(space.options.size(), 0);
  Dealer dealer(space, order, of.fill);
  for (const Dealt& dealt : order) {
    const bool joint = space.pools[static_cast<size_t>(dealt.pool)].joint;
    const auto pipeline = static_cast<size_t>(dealt.pipeline);
    const auto stages = static_cast<size_t>(plan.first[pipeline + 1] - plan.first[pipeline]);
    const size_t groups = stages / static_cast<size_t>(of.interleave);
    CompactStage* const first = plan.stages.data() + plan.first[pipeline] + dealt.group;
    const bool all = dealer.take(dealt, [&](int replica, int node) {
      const int option =
          joint ? space.option_of(space.pool_of_node[static_cast<size_t>(node)], dealt.shape) : dealt.option;
      if (option < 0) return false;
      ++replicas[static_cast<size_t>(option)];
      const int kind = space.options[static_cast<size_t>(option)].kind;
      CompactStage* stage = first + static_cast<size_t>(replica) * stages;
      for (int chunk = 0; chunk < of.interleave; ++chunk, stage += groups) {
        stage->node = node;
        stage->kind = kind;
      }
      return true;
    });
    if (!all) return false;
  }
  return within_limits(space.resources, space, replicas);
}

// Are there as many GPUs at all?
bool enough_gpus(const Space& space, const PlanTemplate& of) {
  std::vector<int64_t> used(space.pools.size(), 0);
  for (const TemplateClass& pipelines : of.classes)
    for (size_t g = 0; g < of.groups(pipelines); ++g) {
      const SpaceOption& option = space.options[static_cast<size_t>(pipelines.stages[g].option)];
      used[static_cast<size_t>(option.pool)] += int64_t{pipelines.pipelines} * option.shape.gpus();
    }
  for (size_t p = 0; p < used.size(); ++p)
    if (used[p] > space.pools[p].gpus) return false;
  return true;
}

// Do microbatches of unlike sizes have the sequences of the global batch? Of one size there is one number.
bool covers_batch(const Space& space, const PlanTemplate& of) {
  if (!has_unlike_microbatches(of)) return true;
  int64_t excess = -space.context.job.training.global_batch;
  for (const TemplateClass& pipelines : of.classes)
    excess += pipelines.microbatches * of.microbatch_of(pipelines);
  return excess >= 0 && excess < of.microbatch_of(of.classes.back());
}

}  // namespace

int PlanTemplate::pipelines() const {
  int count = 0;
  for (const TemplateClass& of : classes) count += of.pipelines;
  return count;
}

bool has_replicas(const Space& space, const PlanTemplate& of) {
  if (of.pipelines() > 1 || space.most_copies == 1) return of.pipelines() > 1;
  const std::vector<TemplateStage>& stages = of.classes.front().stages;
  return std::any_of(stages.begin(), stages.end(),
                     [&](const TemplateStage& stage) { return sharers(space, of, stage.option) > 1; });
}

bool has_unlike_microbatches(const PlanTemplate& of) {
  return std::any_of(of.classes.begin(), of.classes.end(), [&](const TemplateClass& pipelines) {
    return of.microbatch_of(pipelines) != of.microbatch_of(of.classes.front());
  });
}

std::span<const Zero> zero_degrees_of(const Space& space, const PlanFeatures& offered,
                                      const PlanTemplate& of) {
  return zero_degrees(offered, has_replicas(space, of) ? 2 : 1);
}

int zero_group_of(const Space& space, const PlanTemplate& of) {
  const int group = of.zero_group, pipelines = of.zero_group > 0 ? of.pipelines() : 0;
  if (of.zero == Zero::none || group >= pipelines || pipelines % group != 0) return 0;
  const auto shape = [&](const TemplateStage& stage) {
    return space.options[static_cast<size_t>(stage.option)].shape;
  };
  const std::vector<TemplateStage>& first = of.classes.front().stages;
  const bool several = group > 1 || std::ranges::all_of(first, [&](const TemplateStage& stage) {
                         return shape(stage).copies() > 1;
                       });
  // Every group has as many holders of each layer.
  const bool tied = space.kinds[space.options.front().kind].sizes->back().tied_parameters > 0;
  const bool alike =
      of.classes.size() == 1 ||
      (space.most_copies == 1 && (!tied || std::ranges::all_of(of.classes, [&](const TemplateClass& each) {
         return (each.stages.size() == 1) == (first.size() == 1);
       })));
  return several && alike ? group : 0;
}

std::vector<int> zero_groups_to_try(const Space& space, const PlanTemplate& of) {
  const int pipelines = of.pipelines();
  std::set<int> groups;
  int of_classes = 0;
  for (const TemplateClass& each : of.classes) {
    of_classes = std::gcd(of_classes, each.pipelines);
    const SpaceOption& option = space.options[static_cast<size_t>(each.stages.front().option)];
    const SpacePool& pool = space.pools[static_cast<size_t>(option.pool)];
    int group = std::min(pool.node_gpus() / option.shape.gpus(), pipelines);
    while (group > 1 && pipelines % group != 0) --group;
    groups.insert(group);
  }
  if (of.classes.size() > 1) groups.insert(of_classes);
  PlanTemplate with = of;
  std::erase_if(groups, [&](int group) {
    with.zero_group = group;
    return group == 0 || zero_group_of(space, with) == 0;
  });
  return {groups.begin(), groups.end()};
}

int sharers(const Space& space, const PlanTemplate& of, int option) {
  const int group = zero_group_of(space, of);
  return (group > 0 ? group : of.pipelines()) * space.options[static_cast<size_t>(option)].shape.copies();
}

bool assign(const Space& space, const PlanTemplate& of, CompactPlan& plan) {
  if (!enough_gpus(space, of) || !covers_batch(space, of)) return false;
  plan.zero = of.zero;
  plan.zero_group = zero_group_of(space, of);
  plan.interleave = of.interleave;
  plan.sequence_parallel = space.split == TokenSplit::all;
  plan.splits_context = space.most_copies > 1;
  plan.nodes = static_cast<int>(space.nodes.size());
  plan.bills = space.bills;
  plan.stages.clear();
  plan.microbatches.clear();
  plan.microbatch.clear();
  plan.first.assign(1, 0);
  for (const TemplateClass& pipelines : of.classes) {
    const int64_t round = of.interleave > 1 ? static_cast<int64_t>(of.groups(pipelines)) : 1;
    const int64_t each = pipelines.microbatches / round / pipelines.pipelines;
    const int64_t more = pipelines.microbatches / round % pipelines.pipelines;
    if (each < 1 || pipelines.microbatches % round != 0 || (of.interleave > 1 && round < 2)) return false;
    int layer = 0;
    for (const TemplateStage& stage : pipelines.stages) {
      if (stage.end_layer <= layer) return false;
      plan.stages.push_back({space.options[static_cast<size_t>(stage.option)].kind, layer, stage.end_layer,
                             stage.recompute, -1, stage.weight_delay, stage.offload});
      layer = stage.end_layer;
    }
    const size_t stages = pipelines.stages.size();
    for (int j = 0; j < pipelines.pipelines; ++j) {
      if (j > 0) {
        plan.stages.resize(plan.stages.size() + stages);
        std::copy_n(plan.stages.end() - 2 * static_cast<ptrdiff_t>(stages), stages,
                    plan.stages.end() - static_cast<ptrdiff_t>(stages));
      }
      plan.first.push_back(static_cast<int>(plan.stages.size()));
      plan.microbatches.push_back(static_cast<int>((each + (j < more ? 1 : 0)) * round));
      plan.microbatch.push_back(of.microbatch_of(pipelines));
    }
  }
  std::vector<Dealt> order = dealing_order(space, of);
  if (deal(space, order, of, plan)) return true;
  // Small groups may have split up what large ones need.
  std::stable_sort(order.begin(), order.end(),
                   [](const Dealt& a, const Dealt& b) { return a.shape.gpus() > b.shape.gpus(); });
  return deal(space, order, of, plan);
}

Plan plan_of(const Space& space, const CompactPlan& compact) {
  Plan plan;
  plan.model = space.context.job.model.name;
  plan.global_batch = space.context.job.training.global_batch;
  plan.microbatch = *std::ranges::min_element(compact.microbatch);
  plan.zero = compact.zero;
  plan.zero_group = compact.zero_group;
  plan.interleave = compact.interleave;
  std::vector<size_t> taken(space.nodes.size(), 0);
  for (int j = 0; j < compact.pipelines(); ++j) {
    PlanPipeline pipeline;
    pipeline.microbatches = compact.microbatches[static_cast<size_t>(j)];
    if (const int size = compact.microbatch[static_cast<size_t>(j)]; size != plan.microbatch)
      pipeline.microbatch = size;
    const auto stages = compact.of(j);
    const size_t groups = compact.groups(j);
    for (size_t i = 0; i < stages.size(); ++i) {
      const CompactStage& stage = stages[i];
      const StageKind& kind = space.kinds[stage.kind];
      PlanStage out;
      out.first_layer = stage.first_layer;
      out.end_layer = stage.end_layer;
      out.gpu_type = kind.gpu_type;
      out.zone = kind.zone;
      out.shape = kind.shape;
      out.recompute = stage.recompute;
      out.weight_delay = stage.weight_delay;
      out.offload = stage.offload;
      const auto node = static_cast<size_t>(stage.node);
      out.node = space.nodes[node]->name;
      if (i < groups) {
        const std::vector<int>& free = space.nodes[node]->free_gpus;
        out.gpus.assign(free.begin() + static_cast<ptrdiff_t>(taken[node]),
                        free.begin() + static_cast<ptrdiff_t>(taken[node]) + kind.shape.gpus());
        taken[node] += static_cast<size_t>(kind.shape.gpus());
      } else {
        out.gpus = pipeline.stages[i % groups].gpus;
      }
      pipeline.stages.push_back(std::move(out));
    }
    plan.pipelines.push_back(std::move(pipeline));
  }
  plan.sequence_parallel =
      compact.sequence_parallel && (has_tensor_parallelism(plan) || has_context_parallelism(plan));
  return plan;
}

bool template_of(const Space& space, const Plan& plan, PlanTemplate& out) {
  out = {};
  out.microbatch = plan.microbatch;
  out.zero = plan.zero;
  out.zero_group = plan.zero_group;
  out.interleave = plan.interleave;
  for (const PlanPipeline& pipeline : plan.pipelines) {
    TemplateClass of;
    of.microbatches = pipeline.microbatches;
    of.microbatch = pipeline.microbatch.value_or(0);
    for (const PlanStage& stage : pipeline.stages) {
      int option = -1;
      for (size_t o = 0; o < space.options.size(); ++o) {
        const StageKind& kind = space.kinds[space.options[o].kind];
        const bool joint = space.pools[static_cast<size_t>(space.options[o].pool)].joint;
        if (!joint && kind.gpu_type == stage.gpu_type && kind.zone == stage.zone && kind.shape == stage.shape)
          option = static_cast<int>(o);
      }
      if (option < 0 || !space.has_times(option, microbatch_of(plan, pipeline))) return false;
      of.stages.push_back({option, stage.end_layer, stage.recompute.without_offload()});
    }
    // Shares of one class differ by one at most.
    if (!out.classes.empty() && out.classes.back().stages == of.stages &&
        out.classes.back().microbatch == of.microbatch &&
        std::abs(out.classes.back().microbatches / out.classes.back().pipelines - of.microbatches) <= 1) {
      ++out.classes.back().pipelines;
      out.classes.back().microbatches += of.microbatches;
    } else {
      out.classes.push_back(std::move(of));
    }
  }
  return !out.classes.empty();
}

uint64_t hash_of(const PlanTemplate& of) {
  uint64_t hash = 0x9e3779b97f4a7c15;
  const auto add = [&](uint64_t value) {
    hash ^= value + 0x9e3779b97f4a7c15 + (hash << 6) + (hash >> 2);
    hash *= 0xbf58476d1ce4e5b9;
    hash ^= hash >> 29;
  };
  for (const int value : {of.microbatch, static_cast<int>(of.zero) + 4 * of.zero_group, of.interleave,
                          of.block, static_cast<int>(of.fill)})
    add(static_cast<uint64_t>(value));
  for (const TemplateClass& pipelines : of.classes) {
    add(static_cast<uint64_t>(pipelines.microbatch) << 52 | static_cast<uint64_t>(pipelines.pipelines) << 40 |
        static_cast<uint64_t>(pipelines.microbatches));
    for (const TemplateStage& stage : pipelines.stages)
      add(static_cast<uint64_t>(stage.weight_delay + 1) << 52 | static_cast<uint64_t>(stage.option) << 40 |
          static_cast<uint64_t>(stage.end_layer) << 24 | static_cast<uint64_t>(stage.offload) << 23 |
          static_cast<uint64_t>(stage.recompute.level()) << 20 |
          static_cast<uint64_t>(stage.recompute.deep()) << 16 |
          static_cast<uint64_t>(stage.recompute.deep_blocks()));
  }
  return hash;
}

}  // namespace sailor::native
