#include "trainer/parallel/groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <stdexcept>

namespace sailor {

int stage_of(const PlanPipeline& pipeline, int layer) {
  for (std::size_t s = 0; s < pipeline.stages.size(); ++s) {
    if (layer >= pipeline.stages[s].first_layer && layer < pipeline.stages[s].end_layer)
      return static_cast<int>(s);
  }
  throw std::logic_error(fmt::format("layer {} is in no stage", layer));
}

namespace {

// The stages of a pipeline that hold a layer, or, one past the last layer, the matrix that the first and the
// last layer share.
std::vector<int> stages_of(const PlanPipeline& pipeline, int layer) {
  const int last = static_cast<int>(pipeline.stages.size()) - 1;
  if (layer < pipeline.stages.back().end_layer) return {stage_of(pipeline, layer)};
  return last == 0 ? std::vector<int>{0} : std::vector<int>{0, last};
}

}  // namespace

std::vector<GradientGroup> gradient_groups(const Plan& plan, const RankLayout& layout, bool tied_embeddings) {
  std::vector<GradientGroup> groups;
  const int layers = plan.pipelines.front().stages.back().end_layer;
  for (int layer = 0; layer < layers + (tied_embeddings ? 1 : 0); ++layer) {
    int count = 1;
    for (const PlanPipeline& pipeline : plan.pipelines) {
      for (const int stage : stages_of(pipeline, layer))
        count = std::lcm(count, pipeline.stages[static_cast<std::size_t>(stage)].shape.parts());
    }
    for (int index = 0; index < count; ++index) {
      std::vector<int> owners;
      for (std::size_t p = 0; p < plan.pipelines.size(); ++p) {
        for (const int stage : stages_of(plan.pipelines[p], layer)) {
          const ReplicaShape& shape = plan.pipelines[p].stages[static_cast<std::size_t>(stage)].shape;
          const int first = layout.base(static_cast<int>(p), stage) + index / (count / shape.parts());
          for (int copy = 0; copy < shape.copies(); ++copy) owners.push_back(first + copy * shape.parts());
        }
      }
      if (owners.size() < 2) continue;
      auto group = std::find_if(groups.begin(), groups.end(),
                                [&](const GradientGroup& g) { return g.ranks == owners; });
      if (group == groups.end()) group = groups.insert(groups.end(), GradientGroup{owners, {}});
      group->shards.push_back({layer, index, count});
    }
  }
  return groups;
}

std::pair<int64_t, int64_t> rows_of(const SubShard& shard, int part, int parts, int64_t held) {
  const int per_rank = shard.count / parts;
  if (held % per_rank != 0)
    throw std::logic_error(fmt::format("{} rows do not divide into {} sub-shards", held, per_rank));
  if (shard.index / per_rank != part) return {0, 0};
  const int64_t rows = held / per_rank;
  return {(shard.index % per_rank) * rows, rows};
}

}  // namespace sailor
