#include "planner/search/native/placement.h"

#include <algorithm>
#include <limits>
#include <utility>
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

// What a plan leaves of the free GPUs.
std::vector<int> left_of(std::vector<int> free, const Space& space, const CompactPlan& plan,
                         const std::vector<Group>& groups) {
  for (const Group& group : groups) {
    const CompactStage& stage = plan.stages[group.stage];
    free[static_cast<size_t>(stage.node)] -= space.kinds.shape(stage.kind).gpus();
  }
  return free;
}

// Moves all groups of a node to other nodes in use, the fullest with room first; false if there is none.
bool vacate(int node, const Space& space, const std::vector<Group>& groups, const std::vector<int>& all,
            std::vector<int>& left, CompactPlan& plan) {
  const int pool = space.pool_of_node[static_cast<size_t>(node)];
  for (const Group& group : groups) {
    const CompactStage& stage = plan.stages[group.stage];
    if (stage.node != node) continue;
    const int gpus = space.kinds.shape(stage.kind).gpus();
    int to = -1;
    for (const int other : space.pools[static_cast<size_t>(pool)].nodes) {
      const int here = left[static_cast<size_t>(other)];
      if (other != node && here >= gpus && here < all[static_cast<size_t>(other)] &&
          (to < 0 || here < left[static_cast<size_t>(to)]))
        to = other;
    }
    if (to < 0) return false;
    left[static_cast<size_t>(to)] -= gpus;
    left[static_cast<size_t>(node)] += gpus;
    set_node(plan, group, to);
  }
  return true;
}

}  // namespace

void improve_placement(const Space& space, IterationModel& model, const Goal& goal, CompactPlan& plan,
                       const PlacementOptions& options) {
  const std::vector<Group> groups = groups_of(plan);
  if (groups.size() > options.most_groups) return;
  const std::vector<int> all = free_gpus(space);
  std::vector<int> free = left_of(all, space, plan, groups);
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

void use_fewer_nodes(const Space& space, IterationModel& model, const Goal& goal, CompactPlan& plan) {
  constexpr double kAsGood = 1 + 1e-4;
  constexpr size_t kMostNodes = 64;
  const std::vector<Group> groups = groups_of(plan);
  const std::vector<int> all = free_gpus(space);
  std::vector<int> left = left_of(all, space, plan, groups);
  std::vector<std::pair<int, int>> used;  // GPUs in use, node
  for (size_t node = 0; node < all.size(); ++node)
    if (left[node] > 0 && left[node] < all[node])
      used.emplace_back(all[node] - left[node], static_cast<int>(node));
  std::sort(used.begin(), used.end());
  used.resize(std::min(used.size(), kMostNodes));
  double most = -1;  // computed when a node can be vacated
  for (const auto& [gpus, node] : used) {
    CompactPlan next = plan;
    std::vector<int> left_then = left;
    if (!vacate(node, space, groups, all, left_then, next)) continue;
    if (most < 0) most = kAsGood * goal.allowed_value(model.iteration(plan).figures());
    if (!(goal.allowed_value(model.iteration(next).figures()) <= most)) continue;
    plan = std::move(next);
    left = std::move(left_then);
  }
}

}  // namespace sailor::native
