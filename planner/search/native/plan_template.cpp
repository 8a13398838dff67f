#include "planner/search/native/plan_template.h"

#include <algorithm>

namespace sailor::native {
namespace {

struct Dealt {
  int pipeline;
  int group;
  int option;
  int pool;
  ReplicaShape shape;
  int block;  // consecutively placed replicas of this stage from here on; 0 except for the first
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
    if (fill == Fill::even) spread(order);
  }

  // The node of a group of GPUs; -1 when there is none.
  int take(const Dealt& group) {
    const auto pool = static_cast<size_t>(group.pool);
    const std::vector<int>& nodes = space_.pools[pool].nodes;
    size_t& first = first_[pool];
    while (first < nodes.size() && free_[static_cast<size_t>(nodes[first])] == 0) ++first;
    if (together_ && group.block > 0) node_ = best_filled(nodes, first, group.block * group.shape.gpus());
    if (together_ && node_ >= 0 && take_from(node_, group.shape.gpus()) >= 0) return node_;
    for (size_t i = first; i < nodes.size(); ++i)
      if (take_from(nodes[i], group.shape.gpus()) >= 0) return nodes[i];
    return -1;
  }

 private:
  int take_from(int node, int gpus) {
    int& free = free_[static_cast<size_t>(node)];
    int& left = left_[static_cast<size_t>(space_.pool_of_node[static_cast<size_t>(node)])];
    if (free < gpus || left < gpus) return -1;
    free -= gpus;
    left -= gpus;
    return node;
  }

  // The node with the fewest GPUs left that has enough; -1 when there is none.
  int best_filled(const std::vector<int>& nodes, size_t first, int gpus) const {
    int best = -1;
    for (size_t i = first; i < nodes.size(); ++i) {
      const int free = free_[static_cast<size_t>(nodes[i])];
      if (free >= gpus && (best < 0 || free < free_[static_cast<size_t>(best)])) best = nodes[i];
    }
    return best;
  }

  void spread(const std::vector<Dealt>& order) {
    std::vector<int> wanted(space_.pools.size(), 0), degree(space_.pools.size(), 1);
    for (const Dealt& group : order) {
      const auto pool = static_cast<size_t>(group.pool);
      wanted[pool] += group.shape.gpus();
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
  int node_ = -1;              // of the replicas being placed, if they are together
  std::vector<int> free_;      // by node
  std::vector<int> left_;      // by pool of one zone: within its limit
  std::vector<size_t> first_;  // by pool: all nodes before it are full
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
        const int end = std::min(pipelines.pipelines, block + of.block);
        for (int j = block; j < end; ++j)
          order.push_back({first + j, g, number, option.pool, option.shape, j == block ? end - block : 0});
      }
    first += pipelines.pipelines;
  }
  return order;
}

bool deal(const Space& space, const std::vector<Dealt>& order, const PlanTemplate& of, CompactPlan& plan) {
  const Resources& resources = space.resources;
  std::vector<int> used(resources.capacity.size(), 0);
  Dealer dealer(space, order, of.fill);
  for (const Dealt& group : order) {
    const int node = dealer.take(group);
    if (node < 0) return false;
    const int option = space.pools[static_cast<size_t>(group.pool)].joint
                           ? space.option_of(space.pool_of_node[static_cast<size_t>(node)], group.shape)
                           : group.option;
    if (option < 0) return false;
    const SpaceOption& here = space.options[static_cast<size_t>(option)];
    const std::vector<int>& use = resources.use[static_cast<size_t>(here.in_resources)];
    for (size_t c = 0; c < used.size(); ++c)
      if ((used[c] += use[c]) > resources.capacity[c]) return false;
    const int first = plan.first[static_cast<size_t>(group.pipeline)];
    const int groups = (plan.first[static_cast<size_t>(group.pipeline) + 1] - first) / of.interleave;
    for (int chunk = 0; chunk < of.interleave; ++chunk) {
      CompactStage& stage = plan.stages[static_cast<size_t>(first + chunk * groups + group.group)];
      stage.node = node;
      stage.kind = here.kind;
    }
  }
  return true;
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

}  // namespace

int PlanTemplate::pipelines() const {
  int count = 0;
  for (const TemplateClass& of : classes) count += of.pipelines;
  return count;
}

bool assign(const Space& space, const PlanTemplate& of, CompactPlan& plan) {
  if (!enough_gpus(space, of)) return false;
  plan.microbatch = of.microbatch;
  plan.zero = of.zero;
  plan.interleave = of.interleave;
  plan.nodes = static_cast<int>(space.nodes.size());
  plan.bills = space.bills;
  plan.stages.clear();
  plan.microbatches.clear();
  plan.first.assign(1, 0);
  for (const TemplateClass& pipelines : of.classes) {
    const int64_t round = of.interleave > 1 ? static_cast<int64_t>(of.groups(pipelines)) : 1;
    const int64_t each = pipelines.microbatches / round / pipelines.pipelines;
    const int64_t more = pipelines.microbatches / round % pipelines.pipelines;
    if (each < 1 || pipelines.microbatches % round != 0 || (of.interleave > 1 && round < 2)) return false;
    for (int j = 0; j < pipelines.pipelines; ++j) {
      int layer = 0;
      for (const TemplateStage& stage : pipelines.stages) {
        if (stage.end_layer <= layer) return false;
        plan.stages.push_back({space.options[static_cast<size_t>(stage.option)].kind, layer, stage.end_layer,
                               stage.recompute, -1});
        layer = stage.end_layer;
      }
      plan.first.push_back(static_cast<int>(plan.stages.size()));
      const int64_t microbatches = (each + (j < more ? 1 : 0)) * round;
      plan.microbatches.push_back(static_cast<int>(microbatches));
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
  plan.microbatch = compact.microbatch;
  plan.zero = compact.zero;
  plan.interleave = compact.interleave;
  std::vector<size_t> taken(space.nodes.size(), 0);
  for (int j = 0; j < compact.pipelines(); ++j) {
    PlanPipeline pipeline;
    pipeline.microbatches = compact.microbatches[static_cast<size_t>(j)];
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
  return plan;
}

bool template_of(const Space& space, const Plan& plan, PlanTemplate& out) {
  out = {};
  out.microbatch = plan.microbatch;
  out.zero = plan.zero;
  out.interleave = plan.interleave;
  for (const PlanPipeline& pipeline : plan.pipelines) {
    TemplateClass of;
    of.microbatches = pipeline.microbatches;
    for (const PlanStage& stage : pipeline.stages) {
      int option = -1;
      for (size_t o = 0; o < space.options.size(); ++o) {
        const StageKind& kind = space.kinds[space.options[o].kind];
        const bool joint = space.pools[static_cast<size_t>(space.options[o].pool)].joint;
        if (!joint && kind.gpu_type == stage.gpu_type && kind.zone == stage.zone && kind.shape == stage.shape)
          option = static_cast<int>(o);
      }
      if (option < 0 || !space.has_times(option, plan.microbatch)) return false;
      of.stages.push_back({option, stage.end_layer, stage.recompute});
    }
    // Shares of one class differ by one at most.
    if (!out.classes.empty() && out.classes.back().stages == of.stages &&
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
  for (const int value :
       {of.microbatch, static_cast<int>(of.zero), of.interleave, of.block, static_cast<int>(of.fill)})
    add(static_cast<uint64_t>(value));
  for (const TemplateClass& pipelines : of.classes) {
    add(static_cast<uint64_t>(pipelines.pipelines) << 40 | static_cast<uint64_t>(pipelines.microbatches));
    for (const TemplateStage& stage : pipelines.stages)
      add(static_cast<uint64_t>(stage.option) << 32 | static_cast<uint64_t>(stage.end_layer) << 2 |
          static_cast<uint64_t>(stage.recompute));
  }
  return hash;
}

}  // namespace sailor::native
