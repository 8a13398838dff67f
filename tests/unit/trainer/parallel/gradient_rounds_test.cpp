#include "trainer/parallel/gradient_rounds.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "planner/simulator/memory.h"

namespace sailor {
namespace {

constexpr int kLayersInRounds = 9;

PlanPipeline pipeline_of(const std::vector<int>& ends, int microbatches) {
  PlanPipeline pipeline;
  pipeline.microbatches = microbatches;
  int next = 0;
  for (const int end : ends) {
    PlanStage stage;
    stage.first_layer = next;
    stage.end_layer = next = end;
    pipeline.stages.push_back(stage);
  }
  return pipeline;
}

// Pipelines of unlike cuts and shares, or of several chunks per group of GPUs that are cut alike.
Plan plan_with_rounds(std::mt19937& random, int interleave) {
  Plan plan;
  plan.zero = Zero::gradients;
  plan.interleave = interleave;
  std::vector<int> ends;
  for (unsigned p = 2 + random() % 3; p > 0; --p) {
    if (interleave == 1 || ends.empty()) {
      std::set<int> drawn = {kLayersInRounds};
      const std::size_t stages =
          interleave == 1 ? 1 + random() % 4 : 2 * static_cast<std::size_t>(interleave);
      while (drawn.size() < stages) drawn.insert(1 + static_cast<int>(random() % (kLayersInRounds - 1)));
      ends.assign(drawn.begin(), drawn.end());
    }
    const int shares = 1 + static_cast<int>(random() % 6);
    plan.pipelines.push_back(pipeline_of(ends, interleave == 1 ? shares : 2 * shares));
  }
  plan.microbatch = 1;
  for (const PlanPipeline& pipeline : plan.pipelines) plan.global_batch += pipeline.microbatches;
  return plan;
}

// The layers of a rank, each with a matrix.
std::vector<Parameter> matrices_of(const Plan& plan, const RankSlot& slot) {
  const auto& stages = plan.pipelines[static_cast<std::size_t>(slot.pipeline)].stages;
  std::vector<Parameter> all;
  for (std::size_t s = static_cast<std::size_t>(slot.stage); s < stages.size();
       s += stages.size() / static_cast<std::size_t>(plan.interleave)) {
    for (int layer = stages[s].first_layer; layer < stages[s].end_layer; ++layer)
      all.push_back({std::to_string(layer), layer, true, true, at::zeros({4, layer == 0 ? 50 : 10})});
  }
  return all;
}

GradientLayout layout_of_rank(const Plan& plan, const RankLayout& ranks, const RankSlot& slot,
                              std::vector<Parameter>& parameters) {
  std::vector<Parameter*> pointers;
  for (Parameter& parameter : parameters) pointers.push_back(&parameter);
  return gradient_layout(plan, ranks, slot.rank, gradient_groups(plan, ranks), pointers);
}

TEST(GradientRounds, RanksHaveThoseOfTheLayersThatTheyShareInOneOrder) {
  std::mt19937 random(5);
  for (int trial = 0; trial < 100; ++trial) {
    const Plan plan = plan_with_rounds(random, 1 + trial % 3);
    const RankLayout ranks(plan);
    std::vector<std::vector<int>> layers;  // of each rank's rounds
    for (const RankSlot& slot : ranks.slots()) {
      std::vector<Parameter> parameters = matrices_of(plan, slot);
      const GradientLayout layout = layout_of_rank(plan, ranks, slot, parameters);
      ASSERT_EQ(layout.buckets.size(), parameters.size()) << "every layer is a bucket";
      std::map<std::size_t, std::vector<int>> own;
      layers.emplace_back();
      for (const GradientRound& round : gradient_rounds(plan, slot, layout)) {
        layers.back().push_back(layout.buckets[round.bucket].first_layer);
        if (round.microbatch >= 0) own[round.bucket].push_back(round.microbatch);
      }
      const int microbatches = plan.pipelines[static_cast<std::size_t>(slot.pipeline)].microbatches;
      ASSERT_EQ(own.size(), layout.buckets.size());
      for (const auto& [bucket, of_bucket] : own) {
        ASSERT_EQ(of_bucket.size(), static_cast<std::size_t>(microbatches));
        for (int m = 0; m < microbatches; ++m) ASSERT_EQ(of_bucket[static_cast<std::size_t>(m)], m);
      }
    }
    for (const std::vector<int>& a : layers) {
      for (const std::vector<int>& b : layers) {
        const auto shared = [](const std::vector<int>& of, const std::vector<int>& with) {
          std::vector<int> result;
          std::copy_if(of.begin(), of.end(), std::back_inserter(result),
                       [&](int layer) { return std::find(with.begin(), with.end(), layer) != with.end(); });
          return result;
        };
        ASSERT_EQ(shared(a, b), shared(b, a));
      }
    }
  }
}

TEST(GradientRounds, APipelineWithFewMicrobatchesIsInRoundsFromFirstToLast) {
  Plan plan;
  plan.zero = Zero::gradients;
  plan.pipelines = {pipeline_of({1}, 6), pipeline_of({1}, 2)};
  const RankLayout ranks(plan);
  std::vector<Parameter> parameters = matrices_of(plan, ranks.slots()[1]);
  const GradientLayout layout = layout_of_rank(plan, ranks, ranks.slots()[1], parameters);
  std::vector<int> microbatches;
  for (const GradientRound& round : gradient_rounds(plan, ranks.slots()[1], layout))
    microbatches.push_back(round.microbatch);
  EXPECT_EQ(microbatches, (std::vector<int>{-1, -1, 0, -1, -1, 1}));
}

TEST(GradientRounds, TwoLayersTakeTurnsAndALargeOneNeedsItsMemoryOnce) {
  Plan plan;
  plan.zero = Zero::gradients;
  plan.pipelines = {pipeline_of({kLayersInRounds}, 2), pipeline_of({kLayersInRounds}, 2)};
  const RankLayout ranks(plan);
  std::vector<Parameter> parameters = matrices_of(plan, ranks.slots()[0]);
  parameters.back().value = at::zeros({4, 50});  // as large as the first
  const Parameter tied{"tied", kLayersInRounds, true, true, at::zeros({4, 7})};
  parameters.push_back(tied);
  const GradientLayout layout = layout_of_rank(plan, ranks, ranks.slots()[0], parameters);
  const BucketPlaces places = gradient_places(plan, layout);
  EXPECT_EQ(places.elements, 4 * (50 + 10 + 7));
  EXPECT_EQ(places.area, (std::vector<int>{0, 1, 0, 1, 0, 1, 0, 1, 0, -1}));
  for (std::size_t b = 0; b < layout.buckets.size(); ++b) {
    const int64_t begin = places.offsets[layout.buckets[b].parameters.front()];
    EXPECT_EQ(begin, places.area[b] < 0 ? 4 * 60 : places.area[b] * 4 * 50);
  }
  plan.zero = Zero::optimizer;
  EXPECT_TRUE(gradient_rounds(plan, ranks.slots()[0], layout).empty());
}

// What a TP group replicates stays whole, and so does what two layers share.
TEST(GradientRounds, ShardedParametersOfTwoLayersTakeTurns) {
  Plan plan;
  plan.zero = Zero::parameters;
  plan.pipelines = {pipeline_of({kLayersInRounds}, 2), pipeline_of({kLayersInRounds}, 2)};
  const RankLayout ranks(plan);
  std::vector<Parameter> parameters = matrices_of(plan, ranks.slots()[0]);
  parameters.push_back({"3.norm", 3, false, false, at::zeros({5})});
  parameters.push_back({"tied", kLayersInRounds, true, true, at::zeros({4, 7})});
  const GradientLayout layout = layout_of_rank(plan, ranks, ranks.slots()[0], parameters);
  const BucketPlaces values = value_places(plan, layout), gradients = gradient_places(plan, layout);
  EXPECT_EQ(values.elements, 4 * (50 + 10 + 7) + 5);
  EXPECT_EQ(gradients.elements, 4 * (50 + 10 + 7));
  EXPECT_EQ(values.area.back(), -1);
  std::set<int64_t> whole;
  for (std::size_t b = 0; b < layout.buckets.size(); ++b)
    for (const std::size_t i : layout.buckets[b].parameters) {
      const bool gathered = is_gathered(plan, layout.buckets[b], *layout.order[i]);
      EXPECT_EQ(gathered, layout.order[i]->sharded && layout.order[i]->layer < kLayersInRounds);
      if (!gathered) whole.insert(values.offsets[i]);
      EXPECT_EQ(values.offsets[i] >= 4 * 60, !gathered);
    }
  EXPECT_EQ(whole.size(), 2u);
  plan.zero = Zero::gradients;
  const BucketPlaces all = value_places(plan, layout);
  EXPECT_EQ(all.elements, 4 * (50 + 8 * 10 + 7) + 5);
}

// The simulator counts the same memory.
TEST(GradientRounds, ARankHasTheMemoryThatIsPredicted) {
  std::mt19937 random(3);
  for (int trial = 0; trial < 60; ++trial) {
    const Plan plan = plan_with_rounds(random, 1 + trial % 3);
    const RankLayout ranks(plan);
    const auto replicas = static_cast<int64_t>(plan.pipelines.size());
    for (const RankSlot& slot : ranks.slots()) {
      std::vector<Parameter> parameters = matrices_of(plan, slot);
      RankMemoryInput input;
      input.zero = plan.zero;
      input.replicas = static_cast<int>(replicas);
      // A matrix that the first and the last layer share.
      const bool has_first = parameters.front().layer == 0;
      const bool has_last = parameters.back().layer == kLayersInRounds - 1;
      constexpr int64_t kTied = 4 * 70;
      std::vector<std::vector<LayerSizes>> chunks;
      int next = -1;
      for (const Parameter& parameter : parameters) {
        if (parameter.layer != next) chunks.emplace_back();
        next = parameter.layer + 1;
        LayerSizes sizes;
        sizes.parameters = parameter.value.numel() + (parameter.layer == 0 ? kTied : 0);
        if (parameter.layer == kLayersInRounds - 1) {
          sizes.parameters += kTied;
          sizes.tied_parameters = kTied;
        }
        chunks.back().push_back(sizes);
      }
      for (const std::vector<LayerSizes>& layers : chunks) {
        ChunkMemoryInput chunk;
        chunk.layers = layers;
        chunk.has_previous = !has_first || !input.chunks.empty();
        input.chunks.push_back(chunk);
      }
      input.both_ends = has_first && has_last;
      if (has_first) input.tied_parameters = kTied;
      if (has_first || has_last)
        parameters.push_back({"tied", kLayersInRounds, true, true, at::zeros({4, 70})});
      int64_t summed = 0;
      for (const Parameter& parameter : parameters)
        if (parameter.layer < kLayersInRounds) summed += parameter.value.numel();
      const GradientLayout layout = layout_of_rank(plan, ranks, slot, parameters);
      const int64_t predicted_bytes = rank_memory(input, own_framework(), Precision::fp32).gradients_bytes;
      const int64_t bytes = 4 * gradient_places(plan, layout).elements + 4 * summed / replicas;
      // Its part is rounded. Of three layers the largest may have to wait for the one before.
      EXPECT_GE(predicted_bytes, bytes);
      EXPECT_LE(predicted_bytes, bytes + 1 + (parameters.size() < 4 ? 4 * 40 : 0));
    }
  }
}

}  // namespace
}  // namespace sailor
