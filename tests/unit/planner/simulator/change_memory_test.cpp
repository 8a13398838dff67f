#include "planner/simulator/change_memory.h"

#include <gtest/gtest.h>

#include "planner/simulator/memory.h"

namespace sailor {
namespace {

constexpr int64_t kParameters = 1'000'000, kBase = 5'000'000;

// Of a rank with these parameters that sums gradients over two replicas.
MemoryBreakdown training(const FrameworkStyle& style, Precision precision, Zero zero = Zero::none) {
  LayerSizes layer;
  layer.parameters = kParameters;
  layer.output_elements = 10;
  layer.activation_bytes = 1000;
  const std::vector<LayerSizes> layers = {layer};
  RankMemoryInput input;
  input.chunks.push_back({});
  input.chunks[0].layers = layers;
  input.replicas = 2;
  input.zero = zero;
  input.base_bytes = kBase;
  return rank_memory(input, style, precision);
}

int64_t per_parameter(const FrameworkStyle& style, Precision precision, Zero zero = Zero::none) {
  const MemoryBreakdown memory = training(style, precision, zero);
  return (change_bytes(memory, memory, style) - kBase) / kParameters;
}

TEST(ChangeMemory, OnProcessorsBothStatesAreInOneMemory) {
  const FrameworkStyle& style = own_framework(Ranks::processors);
  // The old master copy and moments; weights, gradients, master copy and moments of the new plan.
  EXPECT_EQ(per_parameter(style, Precision::bf16), 12 + 18);
  EXPECT_EQ(per_parameter(style, Precision::fp16), 12 + 18);
  EXPECT_EQ(per_parameter(style, Precision::fp32), 12 + 16);
  EXPECT_EQ(per_parameter(style, Precision::fp64), 24 + 32);
  EXPECT_EQ(per_parameter(style, Precision::bf16, Zero::optimizer), 6 + 12);
}

TEST(ChangeMemory, OnGpusAChangeNeedsNoMoreThanTraining) {
  const FrameworkStyle& style = own_framework(Ranks::gpus);
  EXPECT_EQ(per_parameter(style, Precision::bf16), 18);
  for (const Precision precision : {Precision::fp32, Precision::bf16, Precision::fp16, Precision::fp64}) {
    const MemoryBreakdown memory = training(style, precision);
    EXPECT_LE(change_bytes(memory, memory, style), memory.total());
  }
}

TEST(ChangeMemory, OnlyElasticJobsRestartOnChange) {
  const FrameworkStyle& style = own_framework(Ranks::processors);
  Prediction prediction;
  for (int stage = 0; stage < 2; ++stage) {
    StagePrediction& one = prediction.stages.emplace_back();
    one.stage = stage;
    one.memory = training(style, Precision::bf16);
    one.capacity_bytes = change_bytes(one.memory, one.memory, style);
    ASSERT_GT(one.capacity_bytes, one.memory.total());
  }
  JobSpec job;
  job.elastic.enabled = true;
  EXPECT_EQ(restarts_on_change(job, prediction, style), nullptr);
  --prediction.stages[1].capacity_bytes;
  EXPECT_EQ(restarts_on_change(job, prediction, style), &prediction.stages[1]);
  job.elastic.enabled = false;
  EXPECT_EQ(restarts_on_change(job, prediction, style), nullptr);
}

TEST(ChangeMemory, ALargerNextPlanNeedsMore) {
  const FrameworkStyle& style = own_framework(Ranks::processors);
  const MemoryBreakdown before = training(style, Precision::bf16);
  MemoryBreakdown after = before;
  after.weights_bytes *= 2;
  EXPECT_EQ(change_bytes(before, after, style) - change_bytes(before, before, style), before.weights_bytes);
  EXPECT_EQ(change_bytes(after, before, style), change_bytes(before, before, style))
      << "old weights are freed: their master copies are kept";
}

}  // namespace
}  // namespace sailor
