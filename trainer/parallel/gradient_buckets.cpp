#include "trainer/parallel/gradient_buckets.h"

#include <algorithm>
#include <map>

#include "trainer/parallel/gradient_buffer.h"
#include "trainer/parallel/gradient_rounds.h"

namespace sailor {
namespace {

using ByLayer = std::map<int, std::vector<Parameter*>>;

int num_layers(const Plan& plan) {
  return plan.pipelines.front().stages.back().end_layer;
}

// The stages that hold a layer, pipeline by pipeline.
std::vector<int> holding_stages(const Plan& plan, int layer) {
  std::vector<int> stages;
  for (const PlanPipeline& pipeline : plan.pipelines) stages.push_back(stage_of(pipeline, layer));
  return stages;
}

// Into how many sub-shards each layer falls; layers with one holder are in no group.
std::map<int, int> sub_shards(const std::vector<GradientGroup>& groups) {
  std::map<int, int> counts;
  for (const GradientGroup& group : groups) {
    for (const SubShard& shard : group.shards) counts[shard.layer] = shard.count;
  }
  return counts;
}

// Of one sub-shard of a layer, in the type in which gradients are summed: the same for every holder.
int64_t shard_bytes(const std::vector<Parameter*>& parameters, int parts, int shards) {
  int64_t elements = 0, element_bytes = 4;
  for (const Parameter* parameter : parameters) {
    elements += parameter->value.numel() * (parameter->sharded ? parts : 1);
    element_bytes = static_cast<int64_t>(c10::elementSize(gradient_type(parameter->value.scalar_type())));
  }
  return elements / shards * element_bytes;
}

std::vector<GradientBucket> cut_into_buckets(const Plan& plan, int parts, const std::map<int, int>& shards,
                                             const ByLayer& by_layer) {
  std::vector<GradientBucket> buckets, past_last;
  std::vector<int> of_previous;
  int64_t bytes = 0;
  for (auto it = by_layer.rbegin(); it != by_layer.rend(); ++it) {
    const int layer = it->first;
    const auto count = shards.find(layer);
    if (layer >= num_layers(plan)) {
      past_last.push_back({layer, layer + 1, count != shards.end(), {}, {}});
      continue;
    }
    const std::vector<int> now = holding_stages(plan, layer);
    const bool goes_on = !buckets.empty() && buckets.back().first_layer == layer + 1 && now == of_previous &&
                         bytes < kBucketBytes && !sums_every_microbatch(plan);
    if (goes_on) {
      buckets.back().first_layer = layer;
    } else {
      buckets.push_back({layer, layer + 1, count != shards.end(), {}, {}});
      bytes = 0;
    }
    bytes += shard_bytes(it->second, parts, count == shards.end() ? 1 : count->second);
    of_previous = now;
  }
  buckets.insert(buckets.end(), past_last.begin(), past_last.end());
  return buckets;
}

// The elements of a parameter that belong to a sub-shard, as {first, count}.
std::pair<int64_t, int64_t> elements_of(const SubShard& shard, const RankSlot& slot,
                                        const Parameter& parameter) {
  const int64_t all = parameter.value.numel();
  if (!parameter.sharded) return {0, shard.index == 0 ? all : 0};
  const auto rows = rows_of(shard, slot.tp_rank, slot.shape.parts(), parameter.value.size(0));
  const int64_t per_row = all / std::max<int64_t>(1, parameter.value.size(0));
  return {rows.first * per_row, rows.second * per_row};
}

}  // namespace

GradientLayout gradient_layout(const Plan& plan, const RankLayout& layout, int rank,
                               const std::vector<GradientGroup>& groups,
                               const std::vector<Parameter*>& parameters) {
  const RankSlot& slot = layout.slots().at(static_cast<std::size_t>(rank));
  ByLayer by_layer;
  for (Parameter* parameter : parameters) by_layer[parameter->layer].push_back(parameter);
  GradientLayout result;
  result.buckets = cut_into_buckets(plan, slot.shape.parts(), sub_shards(groups), by_layer);
  for (GradientBucket& bucket : result.buckets) {
    for (const bool sharded : {true, false}) {
      for (int layer = bucket.end_layer; layer-- > bucket.first_layer;) {
        for (Parameter* parameter : by_layer[layer]) {
          if (parameter->sharded != sharded) continue;
          bucket.parameters.push_back(result.order.size());
          result.order.push_back(parameter);
        }
      }
    }
    for (std::size_t g = 0; g < groups.size(); ++g) {
      if (std::find(groups[g].ranks.begin(), groups[g].ranks.end(), rank) == groups[g].ranks.end()) continue;
      GradientPart part{g, false, {}, 0}, gathered{g, true, {}, 0};
      for (const SubShard& shard : groups[g].shards) {
        // The first layer's shards represent all: the others have the same owners.
        if (shard.layer != bucket.first_layer) continue;
        for (const std::size_t i : bucket.parameters) {
          const auto elements = elements_of(shard, slot, *result.order[i]);
          if (elements.second == 0) continue;
          GradientPart& of = is_gathered(plan, bucket, *result.order[i]) ? gathered : part;
          of.segments.push_back({i, elements.first, elements.second});
          of.count += elements.second;
        }
      }
      for (GradientPart* of : {&gathered, &part})
        if (of->count > 0) bucket.parts.push_back(std::move(*of));
    }
  }
  return result;
}

}  // namespace sailor
