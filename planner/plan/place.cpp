#include "planner/plan/place.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <stdexcept>
#include <tuple>
#include <utility>

namespace sailor {
namespace {

constexpr int kNoSwitch = -1;

struct FreeNode {
  const SnapshotNode* node;
  std::vector<int> gpus;        // still free, ascending
  int leaf_switch = kNoSwitch;  // numbered in the order of names
};

struct StageRef {
  size_t pipeline;
  size_t stage;
};

// Free GPUs of every node, without those of placed stages of the plan. Sorted by name, so that the order of
// the snapshot does not matter.
std::vector<FreeNode> free_nodes(const Plan& plan, const Snapshot& snapshot) {
  std::vector<FreeNode> nodes;
  std::map<std::string, int> switches;
  for (const SnapshotNode& node : snapshot.nodes) {
    nodes.push_back({&node, node.free_gpus});
    if (!node.leaf_switch.empty()) switches.emplace(node.leaf_switch, 0);
  }
  int number = 0;
  for (auto& [name, index] : switches) index = number++;
  for (FreeNode& free : nodes) {
    if (!free.node->leaf_switch.empty()) free.leaf_switch = switches.at(free.node->leaf_switch);
  }
  std::sort(nodes.begin(), nodes.end(), [](const auto& a, const auto& b) {
    return std::tie(a.node->name, a.node->gpu_type) < std::tie(b.node->name, b.node->gpu_type);
  });
  for (const PlanPipeline& pipeline : plan.pipelines) {
    for (const PlanStage& stage : pipeline.stages) {
      if (stage.node.empty()) continue;
      for (FreeNode& free : nodes) {
        if (free.node->name != stage.node) continue;
        for (int gpu : stage.gpus) std::erase(free.gpus, gpu);
      }
    }
  }
  return nodes;
}

// The nodes of one type in one zone: the candidates for a stage.
struct Pool {
  std::vector<FreeNode*> nodes;
  std::vector<int> gpus_below;  // free GPUs by leaf switch
  int gpus_to_place = 0;        // of stages without a node
};
using Pools = std::map<std::pair<std::string, std::string>, Pool>;

// Ranks the leaf switches for a stage. In a snapshot without switches all nodes are equal.
class SwitchChoice {
 public:
  SwitchChoice(const Plan& plan, int switches) : plan_(plan), switches_(static_cast<size_t>(switches)) {
    for (const PlanPipeline& pipeline : plan.pipelines)
      switch_of_.emplace_back(pipeline.stages.size(), kNoSwitch);
  }

  void placed(const StageRef& ref, const FreeNode& node) {
    switch_of_[ref.pipeline][ref.stage] = node.leaf_switch;
  }

  // The number of communication partners of the stage below each switch.
  std::vector<int> peers_of(const StageRef& ref) const {
    std::vector<int> peers(switches_, 0);
    if (switches_ == 0) return peers;
    const PlanStage& stage = plan_.pipelines[ref.pipeline].stages[ref.stage];
    for (size_t p = 0; p < plan_.pipelines.size(); ++p) {
      const std::vector<PlanStage>& stages = plan_.pipelines[p].stages;
      for (size_t s = 0; s < stages.size(); ++s) {
        if (switch_of_[p][s] == kNoSwitch) continue;
        const bool neighbour = p == ref.pipeline && (s + 1 == ref.stage || s == ref.stage + 1);
        const bool replica = p != ref.pipeline && stages[s].first_layer < stage.end_layer &&
                             stage.first_layer < stages[s].end_layer;
        if (neighbour || replica) ++peers[static_cast<size_t>(switch_of_[p][s])];
      }
    }
    return peers;
  }

  // Smaller is better.
  static std::pair<int, int> rank(const FreeNode& node, const Pool& pool, const std::vector<int>& peers) {
    if (node.leaf_switch == kNoSwitch) return {0, std::numeric_limits<int>::max()};
    const auto below = static_cast<size_t>(node.leaf_switch);
    const int gpus = pool.gpus_below[below];
    // After all switches with room for the remaining stages: the largest first.
    const int too_small = std::numeric_limits<int>::max() - 1 - gpus;
    return {-peers[below], gpus >= pool.gpus_to_place ? gpus : too_small};
  }

 private:
  const Plan& plan_;
  size_t switches_;
  std::vector<std::vector<int>> switch_of_;  // by pipeline and stage
};

Pools pools_of(const Plan& plan, const std::vector<StageRef>& order, std::vector<FreeNode>& nodes,
               int switches) {
  Pools pools;
  for (FreeNode& free : nodes) {
    Pool& pool = pools[{free.node->gpu_type, free.node->zone}];
    pool.nodes.push_back(&free);
    pool.gpus_below.resize(static_cast<size_t>(switches), 0);
    if (free.leaf_switch != kNoSwitch)
      pool.gpus_below[static_cast<size_t>(free.leaf_switch)] += static_cast<int>(free.gpus.size());
  }
  for (const StageRef& ref : order) {
    const PlanStage& stage = plan.pipelines[ref.pipeline].stages[ref.stage];
    const auto it = pools.find({stage.gpu_type, stage.zone});
    if (it != pools.end()) it->second.gpus_to_place += stage.shape.gpus();
  }
  return pools;
}

// Tries to place every stage of `order`; returns the stage that does not fit, or null.
const StageRef* try_place(Plan& plan, const std::vector<StageRef>& order, std::vector<FreeNode> nodes,
                          bool prefer_own_nodes) {
  int switches = 0;
  std::map<std::string, const FreeNode*> by_name;
  for (const FreeNode& free : nodes) {
    by_name[free.node->name] = &free;
    switches = std::max(switches, free.leaf_switch + 1);
  }
  Pools pools = pools_of(plan, order, nodes, switches);
  SwitchChoice choice(plan, switches);
  std::vector<std::vector<const FreeNode*>> own(plan.pipelines.size());
  for (size_t p = 0; p < plan.pipelines.size(); ++p) {
    for (size_t s = 0; s < plan.pipelines[p].stages.size(); ++s) {
      const PlanStage& stage = plan.pipelines[p].stages[s];
      if (stage.node.empty()) continue;
      if (const auto it = by_name.find(stage.node); it != by_name.end()) {
        own[p].push_back(it->second);
        choice.placed({p, s}, *it->second);
      }
    }
  }
  for (const StageRef& ref : order) {
    PlanStage& stage = plan.pipelines[ref.pipeline].stages[ref.stage];
    const auto found = pools.find({stage.gpu_type, stage.zone});
    if (found == pools.end()) return &ref;
    Pool& pool = found->second;
    const std::vector<int> peers = choice.peers_of(ref);
    const std::vector<const FreeNode*>& of_pipeline = own[ref.pipeline];
    auto rank = [&](const FreeNode& free) {
      const auto is_own = [&](const FreeNode* own_node) { return own_node->node->name == free.node->name; };
      bool foreign = prefer_own_nodes && std::none_of(of_pipeline.begin(), of_pipeline.end(), is_own);
      return std::tuple(foreign, free.gpus.size(), SwitchChoice::rank(free, pool, peers));
    };
    FreeNode* best = nullptr;
    for (FreeNode* free : pool.nodes) {
      bool fits = static_cast<int>(free->gpus.size()) >= stage.shape.gpus();
      if (fits && (best == nullptr || rank(*free) < rank(*best))) best = free;
    }
    if (best == nullptr) return &ref;
    stage.node = best->node->name;
    stage.gpus.assign(best->gpus.begin(), best->gpus.begin() + stage.shape.gpus());
    best->gpus.erase(best->gpus.begin(), best->gpus.begin() + stage.shape.gpus());
    own[ref.pipeline].push_back(best);
    choice.placed(ref, *best);
    pool.gpus_to_place -= stage.shape.gpus();
    if (best->leaf_switch != kNoSwitch)
      pool.gpus_below[static_cast<size_t>(best->leaf_switch)] -= stage.shape.gpus();
  }
  return nullptr;
}

}  // namespace

void unplace(Plan& plan) {
  for (PlanPipeline& pipeline : plan.pipelines)
    for (PlanStage& stage : pipeline.stages) {
      stage.node.clear();
      stage.gpus.clear();
    }
}

void place(Plan& plan, const Snapshot& snapshot) {
  std::vector<StageRef> order;
  const auto groups = [&](size_t p) { return static_cast<size_t>(num_groups(plan, plan.pipelines[p])); };
  for (size_t p = 0; p < plan.pipelines.size(); ++p) {
    if (groups(p) == 0)
      throw std::runtime_error(
          fmt::format("pipeline {}: {} stages cannot form {} chunks on each group of GPUs", p,
                      plan.pipelines[p].stages.size(), plan.interleave));
  }
  for (size_t p = 0; p < plan.pipelines.size(); ++p) {
    for (size_t s = 0; s < groups(p); ++s) {
      if (plan.pipelines[p].stages[s].node.empty()) order.push_back({p, s});
    }
  }
  auto gpus = [&](const StageRef& ref) {
    return plan.pipelines[ref.pipeline].stages[ref.stage].shape.gpus();
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](const auto& a, const auto& b) { return gpus(a) > gpus(b); });
  std::vector<FreeNode> nodes = free_nodes(plan, snapshot);

  // Where one degree divides the next, every choice of nodes works; with other degrees, keeping a pipeline
  // together may not.
  Plan attempt = plan;
  const StageRef* failed = try_place(attempt, order, nodes, true);
  if (failed != nullptr) {
    attempt = plan;
    failed = try_place(attempt, order, nodes, false);
  }
  if (failed != nullptr) {
    const PlanStage& stage = plan.pipelines[failed->pipeline].stages[failed->stage];
    throw std::runtime_error(fmt::format(
        "pipeline {}, stage {}: no node of type {} in zone {} has {} free GPU{} left", failed->pipeline,
        failed->stage, stage.gpu_type, stage.zone, stage.shape.gpus(), stage.shape.gpus() == 1 ? "" : "s"));
  }
  plan = std::move(attempt);
  // Interleaved chunks are where the first chunk is.
  for (size_t p = 0; p < plan.pipelines.size(); ++p) {
    for (size_t s = groups(p); s < plan.pipelines[p].stages.size(); ++s) {
      plan.pipelines[p].stages[s].node = plan.pipelines[p].stages[s % groups(p)].node;
      plan.pipelines[p].stages[s].gpus = plan.pipelines[p].stages[s % groups(p)].gpus;
    }
  }
}

}  // namespace sailor
