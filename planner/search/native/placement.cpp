#include "planner/search/native/placement.h"

#include <limits>
#include <vector>

namespace sailor::native {
namespace {

// A group of GPUs: its pipeline, and its first chunk in the plan's stages.
struct Group {
  int pipeline;
  size_t stage;
};

void set_node(CompactPlan& plan, const Group& group, int node) {
  const size_t groups = plan.groups(group.pipeline);
  for (int chunk = 0; chunk < plan.interleave; ++chunk)
    plan.stages[group.stage + static_cast<size_t>(chunk) * groups].node = node;
}

std::vector<Group> groups_of(const CompactPlan& plan) {
  std::vector<Group> out;
  for (int j = 0; j < plan.pipelines(); ++j)
    for (size_t g = 0; g < plan.groups(j); ++g)
      out.push_back({j, static_cast<size_t>(plan.first[static_cast<size_t>(j)]) + g});
  return out;
}

// By node.
std::vector<int> free_gpus(const Space& space) {
  std::vector<int> free;
  for (const SpacePool& pool : space.pools)
    if (!pool.joint) free.insert(free.end(), pool.free.begin(), pool.free.end());
  return free;
}

}  // namespace

void improve_placement(const Space& space, IterationModel& model, const Goal& goal, CompactPlan& plan,
                       const PlacementOptions& options) {
  const std::vector<Group> groups = groups_of(plan);
  if (groups.size() > options.most_groups) return;
  std::vector<int> free = free_gpus(space);
  for (const Group& group : groups) {
    const CompactStage& stage = plan.stages[group.stage];
    free[static_cast<size_t>(stage.node)] -= space.kinds[stage.kind].shape.gpus();
  }
  const std::vector<int> all = free_gpus(space);
  const auto is_unused = [&](int node) {
    return free[static_cast<size_t>(node)] == all[static_cast<size_t>(node)];
  };
  const auto alike = [&](int a, int b) {
    return all[static_cast<size_t>(a)] == all[static_cast<size_t>(b)] &&
           (*space.bills)[static_cast<size_t>(a)] == (*space.bills)[static_cast<size_t>(b)];
  };
  const auto value = [&] { return goal.allowed_value(model.iteration(plan).figures()); };
  const int64_t until = model.steps() + options.steps;
  double best = value();
  const auto better = [&] {
    const double now = value();
    if (!(now < best * (1 - 1e-9))) return false;
    best = now;
    return true;
  };
  for (bool any = true; any;) {
    any = false;
    for (const Group& a : groups) {
      CompactStage& at = plan.stages[a.stage];
      const int gpus = space.kinds[at.kind].shape.gpus(),
                pool = space.pool_of_node[static_cast<size_t>(at.node)];
      int unused = -1;  // the last one that was tried: one like it gives the same plan
      for (const int node : space.pools[static_cast<size_t>(pool)].nodes) {
        const int from = at.node;
        if (is_unused(node)) {
          if (unused >= 0 && alike(unused, node)) continue;
          unused = node;
        }
        if (node == from || free[static_cast<size_t>(node)] < gpus || model.steps() > until) continue;
        set_node(plan, a, node);
        if (better()) {
          free[static_cast<size_t>(node)] -= gpus;
          free[static_cast<size_t>(from)] += gpus;
          any = true;
        } else {
          set_node(plan, a, from);
        }
      }
      for (const Group& b : groups) {
        const CompactStage& other = plan.stages[b.stage];
        if (&other <= &at || other.kind != at.kind || other.node == at.node || model.steps() > until)
          continue;
        const int node_a = at.node, node_b = other.node;
        set_node(plan, a, node_b);
        set_node(plan, b, node_a);
        if (better()) {
          any = true;
        } else {
          set_node(plan, a, node_a);
          set_node(plan, b, node_b);
        }
      }
    }
  }
}

}  // namespace sailor::native
