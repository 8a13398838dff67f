#include "trainer/parallel/gradient_rounds.h"

#include <algorithm>

namespace sailor {
namespace {

bool has_rounds(const Plan& plan, const GradientBucket& bucket) {
  return sums_every_microbatch(plan) && bucket.first_layer < plan.pipelines.front().stages.back().end_layer;
}

int most_microbatches(const Plan& plan) {
  int most = 0;
  for (const PlanPipeline& pipeline : plan.pipelines) most = std::max(most, pipeline.microbatches);
  return most;
}

int64_t elements_of(const GradientLayout& layout, const GradientBucket& bucket) {
  int64_t elements = 0;
  for (const std::size_t i : bucket.parameters) elements += layout.order[i]->value.numel();
  return elements;
}

}  // namespace

bool sums_every_microbatch(const Plan& plan) {
  return plan.zero >= Zero::gradients && plan.pipelines.size() > 1;
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
  const PlanPipeline& pipeline = plan.pipelines[static_cast<std::size_t>(slot.pipeline)];
  const auto add = [&](const PlanStage& stage, int microbatch) {
    for (std::size_t b = 0; b < layout.buckets.size(); ++b) {
      const GradientBucket& bucket = layout.buckets[b];
      if (has_rounds(plan, bucket) && bucket.first_layer >= stage.first_layer &&
          bucket.first_layer < stage.end_layer)
        rounds.push_back({b, microbatch});
    }
  };
  const int all = most_microbatches(plan), own = pipeline.microbatches;
  if (plan.interleave == 1) {
    for (int64_t i = 0; i < all; ++i) {
      const int64_t microbatch = i * own / all;
      const bool adds = (i + 1) * own / all > microbatch;
      add(pipeline.stages[static_cast<std::size_t>(slot.stage)], adds ? static_cast<int>(microbatch) : -1);
    }
    return rounds;
  }
  // As the schedule has them (trainer/pipeline/schedule.h), of which fewer microbatches are the beginning.
  const int groups = num_groups(plan, pipeline);
  for (int first = 0; first < all; first += groups) {
    for (int chunk = plan.interleave; chunk-- > 0;) {
      const PlanStage& stage = pipeline.stages[static_cast<std::size_t>(chunk * groups + slot.stage)];
      for (int i = first; i < std::min(first + groups, all); ++i) add(stage, i < own ? i : -1);
    }
  }
  return rounds;
}

GradientPlaces gradient_places(const Plan& plan, const GradientLayout& layout) {
  GradientPlaces places;
  places.offsets.resize(layout.order.size());
  // The second area is as large as two neighbours need; larger buckets are in the first one.
  int64_t sizes[] = {0, 0}, previous = 0, needed = 0;
  for (const GradientBucket& bucket : layout.buckets) {
    if (!has_rounds(plan, bucket)) continue;
    const int64_t elements = elements_of(layout, bucket);
    needed = std::max(needed, std::min(previous, elements));
    previous = elements;
  }
  int last = 1;
  for (const GradientBucket& bucket : layout.buckets) {
    places.area.push_back(-1);
    if (!has_rounds(plan, bucket)) continue;
    const int64_t elements = elements_of(layout, bucket);
    last = elements > needed ? 0 : 1 - last;
    sizes[last] = std::max(sizes[last], elements);
    places.area.back() = last;
  }
  places.elements = sizes[0] + sizes[1];
  for (std::size_t b = 0; b < layout.buckets.size(); ++b) {
    const bool alone = places.area[b] < 0;
    int64_t offset = alone ? places.elements : places.area[b] == 0 ? 0 : sizes[0];
    for (const std::size_t i : layout.buckets[b].parameters) {
      places.offsets[i] = offset;
      offset += layout.order[i]->value.numel();
    }
    if (alone) places.elements = offset;
  }
  return places;
}

}  // namespace sailor
