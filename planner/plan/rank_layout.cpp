#include "planner/plan/rank_layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

namespace sailor {

RankLayout::RankLayout(const Plan& plan) {
  for (size_t p = 0; p < plan.pipelines.size(); ++p) {
    bases_.emplace_back();
    const size_t groups = static_cast<size_t>(std::max(1, num_groups(plan, plan.pipelines[p])));
    for (size_t s = 0; s < plan.pipelines[p].stages.size(); ++s) {
      const PlanStage& stage = plan.pipelines[p].stages[s];
      if (s >= groups) {
        bases_.back().push_back(bases_.back()[s % groups]);
        continue;
      }
      bases_.back().push_back(size());
      for (int g = 0; g < stage.shape.gpus(); ++g) {
        bool placed = !stage.node.empty() && static_cast<size_t>(g) < stage.gpus.size();
        slots_.push_back({.rank = size(),
                          .pipeline = static_cast<int>(p),
                          .stage = static_cast<int>(s),
                          .tp_rank = stage.shape.part_of(g),
                          .cp_rank = stage.shape.copy_of(g),
                          .shape = stage.shape,
                          .node = stage.node,
                          .gpu = placed ? stage.gpus[static_cast<size_t>(g)] : -1});
      }
    }
  }
}

std::vector<int> RankLayout::ranks_on(const std::string& node) const {
  std::vector<int> ranks;
  for (const RankSlot& slot : slots_) {
    if (slot.node == node) ranks.push_back(slot.rank);
  }
  return ranks;
}

std::vector<std::string> RankLayout::nodes() const {
  std::vector<std::string> names;
  for (const RankSlot& slot : slots_) {
    if (!slot.node.empty() && std::find(names.begin(), names.end(), slot.node) == names.end()) {
      names.push_back(slot.node);
    }
  }
  return names;
}

MicrobatchRange microbatch_range(const Plan& plan, int pipeline, int index) {
  if (pipeline < 0 || pipeline >= static_cast<int>(plan.pipelines.size()) || index < 0 ||
      index >= plan.pipelines[static_cast<size_t>(pipeline)].microbatches) {
    throw std::out_of_range(
        fmt::format("microbatch_range: no microbatch {} in pipeline {}", index, pipeline));
  }
  const PlanPipeline& own = plan.pipelines[static_cast<size_t>(pipeline)];
  const int microbatch = microbatch_of(plan, own);
  int64_t first = int64_t{index} * microbatch;
  for (int p = 0; p < pipeline; ++p) {
    const PlanPipeline& before = plan.pipelines[static_cast<size_t>(p)];
    first += int64_t{before.microbatches} * microbatch_of(plan, before);
  }
  const int64_t left = std::max<int64_t>(0, plan.global_batch - first);
  return {first, static_cast<int>(std::min<int64_t>(microbatch, left))};
}

}  // namespace sailor
