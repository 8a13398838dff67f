#include "planner/simulator/memory.h"

#include <gtest/gtest.h>

namespace sailor {
namespace {

LayerSizes layer(int64_t parameters, int64_t activation_bytes, int64_t workspace_bytes) {
  LayerSizes out;
  out.parameters = parameters;
  out.output_elements = 10;
  out.activation_bytes = activation_bytes;
  out.workspace_bytes = workspace_bytes;
  return out;
}

TEST(Memory, InFlightIsStagesBehindButNeverMoreThanThereAreMicrobatches) {
  EXPECT_EQ(in_flight(0, 4, 100), 4);
  EXPECT_EQ(in_flight(3, 4, 100), 1);
  EXPECT_EQ(in_flight(0, 4, 2), 2);
  EXPECT_EQ(in_flight(2, 4, 1), 1);
}

TEST(Memory, EverySourceIsCountedOnce) {
  const std::vector<LayerSizes> layers = {layer(100, 7, 3), layer(300, 11, 50)};
  StageMemoryInput input;
  input.microbatch = 2;
  input.in_flight = 3;
  input.has_previous = true;
  input.input_elements = 10;
  input.data_parallel = true;
  input.base_bytes = 1000;
  const MemoryBreakdown m = stage_memory(layers, input, Precision::fp32);
  EXPECT_EQ(m.weights_bytes, 1600);
  EXPECT_EQ(m.gradients_bytes, 1600);
  EXPECT_EQ(m.optimizer_bytes, 3200);
  EXPECT_EQ(m.activations_bytes, 18 * 2 * 3);
  EXPECT_EQ(m.workspace_bytes, 100);
  // Received activations of three microbatches in flight, a gradient out and a message in; the gradient
  // bucket.
  EXPECT_EQ(m.communication_bytes, (3 + 2) * 10 * 2 * 4 + 300 * 4);
  EXPECT_EQ(m.base_bytes, 1000);
  EXPECT_EQ(m.total(), 1600 + 1600 + 3200 + 108 + 100 + 400 + 1200 + 1000);
}

TEST(Memory, AbsurdSizesNeverWrapAround) {
  const std::vector<LayerSizes> layers(100, layer(int64_t{1} << 42, int64_t{1} << 42, int64_t{1} << 42));
  StageMemoryInput input;
  input.microbatch = 1'000'000;
  input.in_flight = 1000;
  const MemoryBreakdown m = stage_memory(layers, input, Precision::fp32);
  EXPECT_GT(m.activations_bytes, int64_t{1} << 57);
  EXPECT_GT(m.total(), int64_t{1} << 57);
}

TEST(Memory, PrecisionSetsTheSizeOfWeightsAndMoments) {
  const std::vector<LayerSizes> layers = {layer(100, 0, 0)};
  const MemoryBreakdown fp64 = stage_memory(layers, {}, Precision::fp64);
  EXPECT_EQ(fp64.weights_bytes, 800);
  EXPECT_EQ(fp64.optimizer_bytes, 1600);
  const MemoryBreakdown bf16 = stage_memory(layers, {}, Precision::bf16);
  EXPECT_EQ(bf16.weights_bytes, 200);
  EXPECT_EQ(bf16.gradients_bytes, 200);
  EXPECT_EQ(bf16.optimizer_bytes, 1200);  // two 32-bit moments and the 32-bit master copy
}

}  // namespace
}  // namespace sailor
