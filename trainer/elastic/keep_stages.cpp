#include "trainer/elastic/keep_stages.h"

#include <algorithm>
#include <map>
#include <set>
#include <stdexcept>
#include <utility>

#include "planner/plan/place.h"

namespace sailor {
namespace {

using Ranges = std::vector<std::pair<int, int>>;

// The layers of the group of GPUs whose first stage is `stage`.
Ranges layers_of(const Plan& plan, const PlanPipeline& pipeline, size_t stage) {
  Ranges layers;
  const auto groups = static_cast<size_t>(num_groups(plan, pipeline));
  for (size_t s = stage; s < pipeline.stages.size(); s += groups)
    layers.emplace_back(pipeline.stages[s].first_layer, pipeline.stages[s].end_layer);
  return layers;
}

int common_layers(const Ranges& a, const Ranges& b) {
  int common = 0;
  for (const auto& [first, end] : a) {
    for (const auto& [other_first, other_end] : b)
      common += std::max(0, std::min(end, other_end) - std::max(first, other_first));
  }
  return common;
}

// The part of the state for TP rank `rank` of `tp` that the process has, in layers.
double overlap(const HeldStage& held, const Ranges& layers, int rank, int tp) {
  const double begin = std::max(static_cast<double>(rank) / tp, static_cast<double>(held.tp_rank) / held.tp);
  const double end =
      std::min(static_cast<double>(rank + 1) / tp, static_cast<double>(held.tp_rank + 1) / held.tp);
  return std::max(0.0, end - begin) * common_layers(held.layers, layers);
}

struct Choice {
  double kept = 0;
  std::vector<int> gpus;  // by GPU of the replica
};

// The best GPUs of one node for a stage, each GPU of the replica choosing in turn.
Choice choose_gpus(const std::set<int>& free, const std::map<int, const HeldStage*>& held,
                   const Ranges& layers, const ReplicaShape& shape) {
  Choice choice;
  choice.gpus.assign(static_cast<size_t>(shape.gpus()), -1);
  std::set<int> left = free;
  for (int rank = 0; rank < shape.gpus(); ++rank) {
    double most = 0;
    for (const int gpu : left) {
      auto it = held.find(gpu);
      const double kept =
          it == held.end() ? 0 : overlap(*it->second, layers, shape.part_of(rank), shape.parts());
      if (kept <= most) continue;
      most = kept;
      choice.gpus[static_cast<size_t>(rank)] = gpu;
    }
    choice.kept += most;
    left.erase(choice.gpus[static_cast<size_t>(rank)]);
  }
  for (int& gpu : choice.gpus) {
    if (gpu >= 0) continue;
    gpu = *left.begin();
    left.erase(left.begin());
  }
  return choice;
}

}  // namespace

std::vector<HeldStage> held_stages(const Plan& plan) {
  std::vector<HeldStage> held;
  for (const PlanPipeline& pipeline : plan.pipelines) {
    const auto groups = static_cast<size_t>(num_groups(plan, pipeline));
    for (size_t s = 0; s < groups; ++s) {
      const PlanStage& stage = pipeline.stages[s];
      for (size_t t = 0; t < stage.gpus.size(); ++t)
        held.push_back({stage.node, stage.gpus[t], layers_of(plan, pipeline, s),
                        stage.shape.part_of(static_cast<int>(t)), stage.shape.parts()});
    }
  }
  return held;
}

double keep_stages(Plan& plan, const Snapshot& snapshot, const std::vector<HeldStage>& held) {
  std::map<std::string, std::map<int, const HeldStage*>> held_on;
  for (const HeldStage& one : held) held_on[one.node][one.gpu] = &one;
  std::map<std::string, std::set<int>> free;
  for (const SnapshotNode& node : snapshot.nodes)
    free[node.name] = {node.free_gpus.begin(), node.free_gpus.end()};

  Plan placed = plan;
  std::vector<std::pair<size_t, size_t>> open;
  for (size_t p = 0; p < placed.pipelines.size(); ++p) {
    for (size_t s = 0; s < placed.pipelines[p].stages.size(); ++s) {
      placed.pipelines[p].stages[s].node.clear();
      placed.pipelines[p].stages[s].gpus.clear();
      if (s < static_cast<size_t>(num_groups(placed, placed.pipelines[p]))) open.emplace_back(p, s);
    }
  }
  double kept = 0;
  while (true) {
    Choice best;
    std::string best_node;
    size_t best_open = 0;
    for (size_t i = 0; i < open.size(); ++i) {
      const PlanPipeline& pipeline = placed.pipelines[open[i].first];
      const PlanStage& stage = pipeline.stages[open[i].second];
      const Ranges layers = layers_of(placed, pipeline, open[i].second);
      for (const SnapshotNode& node : snapshot.nodes) {
        if (node.gpu_type != stage.gpu_type || node.zone != stage.zone ||
            free[node.name].size() < static_cast<size_t>(stage.shape.gpus()))
          continue;
        Choice choice = choose_gpus(free[node.name], held_on[node.name], layers, stage.shape);
        if (choice.kept <= best.kept) continue;
        best = std::move(choice);
        best_node = node.name;
        best_open = i;
      }
    }
    if (best.kept <= 0) break;
    PlanStage& stage = placed.pipelines[open[best_open].first].stages[open[best_open].second];
    stage.node = best_node;
    stage.gpus = best.gpus;
    for (const int gpu : best.gpus) free[best_node].erase(gpu);
    kept += best.kept;
    open.erase(open.begin() + static_cast<std::ptrdiff_t>(best_open));
  }
  try {
    place(placed, snapshot);
  } catch (const std::runtime_error&) {
    return 0;  // single stages block one that needs a whole node
  }
  plan = std::move(placed);
  return kept;
}

}  // namespace sailor
