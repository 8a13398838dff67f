#include "trainer/parallel/gradient_rounds.h"

#include <algorithm>

#include "trainer/parallel/common_order.h"

namespace sailor {
namespace {

// `turns`: does the memory of this bucket's parameter change hands?
template <class Turns>
BucketPlaces places_of(const GradientLayout& layout, const Turns& turns) {
  const auto elements_of = [&](const GradientBucket& bucket) {
    int64_t elements = 0;
    for (const std::size_t i : bucket.parameters)
      if (turns(bucket, *layout.order[i])) elements += layout.order[i]->value.numel();
    return elements;
  };
  BucketPlaces places;
  places.offsets.resize(layout.order.size());
  // The second area is as large as two neighbours need; larger buckets are in the first one.
  int64_t sizes[] = {0, 0}, previous = 0, needed = 0;
  for (const GradientBucket& bucket : layout.buckets) {
    const int64_t elements = elements_of(bucket);
    if (elements == 0) continue;
    needed = std::max(needed, std::min(previous, elements));
    previous = elements;
  }
  int last = 1;
  for (const GradientBucket& bucket : layout.buckets) {
    places.area.push_back(-1);
    const int64_t elements = elements_of(bucket);
    if (elements == 0) continue;
    last = elements > needed ? 0 : 1 - last;
    sizes[last] = std::max(sizes[last], elements);
    places.area.back() = last;
  }
  places.elements = sizes[0] + sizes[1];
  for (std::size_t b = 0; b < layout.buckets.size(); ++b) {
    int64_t in_area = places.area[b] == 1 ? sizes[0] : 0;
    for (const std::size_t i : layout.buckets[b].parameters) {
      int64_t& next = turns(layout.buckets[b], *layout.order[i]) ? in_area : places.elements;
      places.offsets[i] = next;
      next += layout.order[i]->value.numel();
    }
  }
  return places;
}

}  // namespace

bool sums_every_microbatch(const Plan& plan) {
  return plan.zero >= Zero::gradients && has_replicas(plan);
}

bool has_rounds(const Plan& plan, const GradientBucket& bucket) {
  return sums_every_microbatch(plan) && bucket.summed &&
         bucket.first_layer < plan.pipelines.front().stages.back().end_layer;
}

bool gathers_every_microbatch(const Plan& plan) {
  return plan.zero >= Zero::parameters && sums_every_microbatch(plan);
}

bool is_gathered(const Plan& plan, const GradientBucket& bucket, const Parameter& parameter) {
  return gathers_every_microbatch(plan) && has_rounds(plan, bucket) && parameter.sharded;
}

std::vector<int64_t> summed_sequences(const Plan& plan, int pipeline) {
  std::vector<int64_t> sequences;
  for (int m = 0; m < plan.pipelines[static_cast<std::size_t>(pipeline)].microbatches; ++m) {
    if (m == 0 || sums_every_microbatch(plan)) sequences.push_back(0);
    sequences.back() += microbatch_range(plan, pipeline, m).sequences;
  }
  return sequences;
}

std::vector<GradientRound> gradient_rounds(const Plan& plan, const RankSlot& slot,
                                           const GradientLayout& layout) {
  std::vector<GradientRound> rounds;
  if (!sums_every_microbatch(plan)) return rounds;
  for (const ScheduleStep& step : common_steps(plan, slot)) {
    if (step.kind != ScheduleStep::Kind::backward) continue;
    const PlanStage& stage = stage_of_chunk(plan, slot, step.chunk);
    for (std::size_t b = 0; b < layout.buckets.size(); ++b) {
      const GradientBucket& bucket = layout.buckets[b];
      if (has_rounds(plan, bucket) && bucket.first_layer >= stage.first_layer &&
          bucket.first_layer < stage.end_layer)
        rounds.push_back({b, own_microbatch(plan, slot.pipeline, step.microbatch)});
    }
  }
  return rounds;
}

BucketPlaces gradient_places(const Plan& plan, const GradientLayout& layout) {
  return places_of(layout,
                   [&](const GradientBucket& bucket, const Parameter&) { return has_rounds(plan, bucket); });
}

BucketPlaces value_places(const Plan& plan, const GradientLayout& layout) {
  return places_of(layout, [&](const GradientBucket& bucket, const Parameter& parameter) {
    return is_gathered(plan, bucket, parameter);
  });
}

}  // namespace sailor
