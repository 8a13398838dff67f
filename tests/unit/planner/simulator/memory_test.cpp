#include "planner/simulator/memory.h"

#include <gtest/gtest.h>

#include <iterator>
#include <random>
#include <span>
#include <utility>
#include <vector>

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

// A rank that holds `layers` in one chunk.
RankMemoryInput rank_of(const std::vector<LayerSizes>& layers, Recompute recompute = Recompute::none) {
  ChunkMemoryInput chunk;
  chunk.layers = layers;
  chunk.recompute = recompute;
  RankMemoryInput input;
  input.chunks.push_back(chunk);
  return input;
}

// A framework that adds nothing of its own, so that a test adds one thing at a time.
FrameworkStyle bare() {
  FrameworkStyle style;
  style.sync_buffer = false;
  return style;
}

TEST(Memory, InFlightIsStagesBehindButNeverMoreThanThereAreMicrobatches) {
  EXPECT_EQ(in_flight(0, 4, 100), 4);
  EXPECT_EQ(in_flight(3, 4, 100), 1);
  EXPECT_EQ(in_flight(0, 4, 2), 2);
  EXPECT_EQ(in_flight(2, 4, 1), 1);
}

TEST(Memory, EverySourceOfOurTrainerIsCountedOnce) {
  const std::vector<LayerSizes> layers = {layer(100, 7, 3), layer(300, 11, 50)};
  RankMemoryInput input = rank_of(layers);
  input.chunks[0].in_flight = 3;
  input.chunks[0].has_previous = input.chunks[0].has_next = true;
  input.chunks[0].input_elements = 10;
  input.microbatch = 2;
  input.microbatches = 8;
  input.replicas = 2;
  input.base_bytes = 1000;
  const MemoryBreakdown m = rank_memory(input, own_framework(), Precision::fp32);
  EXPECT_EQ(m.weights_bytes, 1600);
  EXPECT_EQ(m.gradients_bytes, 1600);
  EXPECT_EQ(m.optimizer_bytes, 3200);
  EXPECT_EQ(m.master_bytes, 0);
  EXPECT_EQ(m.activations_bytes, (7 + 11) * 2 * 3);
  EXPECT_EQ(m.workspace_bytes, 50 * 2);
  // Received activations of three microbatches in flight and two messages on their way on each side; what
  // the sums in place receive from others: as much as all 400 gradients.
  const int64_t message = 10 * 2 * 4;
  EXPECT_EQ(m.communication_bytes, (3 + 2) * message + 2 * message + 400 * 4);
  EXPECT_EQ(m.base_bytes, 1000);
  EXPECT_EQ(m.fragmentation_bytes, 0);
  EXPECT_EQ(m.total(), 1600 + 1600 + 3200 + 108 + 100 + 400 + 160 + 1600 + 1000);
}

TEST(Memory, OfSplitTokensARankReceivesAndSendsItsShare) {
  const std::vector<LayerSizes> layers = {layer(100, 7, 3)};
  RankMemoryInput input = rank_of(layers);
  input.chunks[0].in_flight = 3;
  input.chunks[0].has_previous = input.chunks[0].has_next = true;
  input.chunks[0].input_elements = 10;
  input.microbatch = 2;
  input.token_shares = 4;
  const MemoryBreakdown m = rank_memory(input, own_framework(), Precision::fp32);
  EXPECT_EQ(m.communication_bytes, (3 + 2) * (10 * 2 * 4 / 4) + 2 * (10 * 2 * 4 / 4));
  EXPECT_EQ(m.activations_bytes, 7 * 2 * 3);  // the sizes are those of split tokens already
}

TEST(Memory, OffloadedStatesAreNotOnTheGpu) {
  const std::vector<LayerSizes> layers = {layer(100, 7, 3), layer(300, 11, 50)};
  RankMemoryInput input = rank_of(layers);
  input.replicas = 2;
  input.average = true;
  for (const Zero zero : {Zero::none, Zero::optimizer, Zero::parameters}) {
    input.zero = zero;
    input.offload = Offload::none;
    const MemoryBreakdown all = rank_memory(input, own_framework(), Precision::bf16);
    input.offload = Offload::optimizer;
    const MemoryBreakdown m = rank_memory(input, own_framework(), Precision::bf16);
    // Master copies, two moments and the average.
    EXPECT_EQ(m.offloaded_bytes, 400 * 16 / (zero == Zero::none ? 1 : 2));
    EXPECT_EQ(m.master_bytes + m.optimizer_bytes, 0);
    EXPECT_EQ(m.total(), all.total() - m.offloaded_bytes);
    EXPECT_EQ(all.offloaded_bytes, 0);
  }
}

TEST(Memory, AnAverageIsAStateOfTheOptimizer) {
  const std::vector<LayerSizes> layers = {layer(100, 7, 3), layer(300, 11, 50)};
  for (const Precision precision : {Precision::bf16, Precision::fp32, Precision::fp64}) {
    for (const Zero zero : {Zero::none, Zero::optimizer}) {
      RankMemoryInput input = rank_of(layers);
      input.replicas = 4;
      input.zero = zero;
      const MemoryBreakdown plain = rank_memory(input, own_framework(), precision);
      input.average = true;
      const MemoryBreakdown with = rank_memory(input, own_framework(), precision);
      EXPECT_EQ(with.total() - plain.total(),
                400 * (precision == Precision::fp64 ? 8 : 4) / (zero == Zero::none ? 1 : 4));
      EXPECT_EQ(with.optimizer_bytes - plain.optimizer_bytes, with.total() - plain.total());
    }
  }
}

// Behind the layer whose backward runs, everything is released already:
//   layer 2: 30;  layer 1: 500 - 300;  layer 0: 50 - 300 - 200 < 0
TEST(Memory, ThePeakIsInTheBackwardThatNeedsMostBeyondWhatIsReleased) {
  const std::vector<LayerSizes> layers = {layer(0, 100, 50), layer(0, 200, 500), layer(0, 300, 30)};
  MemoryBreakdown m = rank_memory(rank_of(layers), bare(), Precision::bf16);
  EXPECT_EQ(m.activations_bytes, 600);
  EXPECT_EQ(m.workspace_bytes, 200);
  // With another microbatch in flight only one of them is in its backward.
  RankMemoryInput two = rank_of(layers);
  two.chunks[0].in_flight = 2;
  m = rank_memory(two, bare(), Precision::bf16);
  EXPECT_EQ(m.activations_bytes, 1200);
  EXPECT_EQ(m.workspace_bytes, 200);
}

TEST(Memory, LayersThatAreKnownToBeAlikeNeedWhatTheyNeedOneByOne) {
  std::mt19937_64 random(3);
  const auto below = [&](int64_t limit) {
    return static_cast<int64_t>(random() % static_cast<uint64_t>(limit));
  };
  for (int round = 0; round < 2000; ++round) {
    // Of two kinds, in runs.
    LayerSizes kinds[2];
    for (LayerSizes& kind : kinds) {
      kind = layer(below(1000), 1 + below(1000), below(2000));
      kind.light_bytes = below(kind.activation_bytes);
      kind.mlp_bytes = below(kind.activation_bytes);
      kind.checkpoint_bytes = below(100);
      kind.pending_bytes = below(2000);
      kind.tied_parameters = below(2) * below(kind.parameters + 1);
      kind.frozen_parameters = below(1000);
      kind.persistent_bytes = below(100);
    }
    std::vector<LayerSizes> layers;
    std::vector<int> alike;
    for (int64_t left = 4 + below(20), kind = 0; left > 0; --left) {
      if (below(5) == 0) kind = 1 - kind;
      layers.push_back(kinds[kind]);
      const bool repeats = layers.size() > 1 && layers[layers.size() - 2] == layers.back();
      alike.push_back(repeats ? alike.back() + 1 : 1);
    }
    // Two chunks, which may begin and end inside a run.
    const auto first = static_cast<size_t>(below(2)), end = layers.size() - static_cast<size_t>(below(2));
    const size_t middle = first + 1 + static_cast<size_t>(below(static_cast<int64_t>(end - first) - 1));
    RankMemoryInput input;
    for (const auto& [from, to] : {std::pair(first, middle), std::pair(middle, end)}) {
      ChunkMemoryInput chunk;
      chunk.layers = std::span(layers).subspan(from, to - from);
      chunk.recompute = {kTrainedLevels[below(std::size(kTrainedLevels))], static_cast<int>(below(9)),
                         kTrainedLevels[below(std::size(kTrainedLevels))]};
      chunk.in_flight = 1 + static_cast<int>(below(4));
      chunk.has_previous = from > 0;
      chunk.has_next = to < layers.size();
      chunk.weight_delay = below(2) == 0 ? kWholeBackward : static_cast<int>(below(4));
      chunk.nothing_again = below(4) == 0;
      input.chunks.push_back(chunk);
    }
    input.microbatches = 4;
    input.replicas = 1 + static_cast<int>(below(3));
    input.both_ends = below(2) == 0;
    input.zero = static_cast<Zero>(below(4));
    input.tied_parameters = below(kinds[0].parameters + 1);
    const MemoryBreakdown one_by_one = rank_memory(input, own_framework(), Precision::bf16);
    for (ChunkMemoryInput& chunk : input.chunks) {
      const auto from = static_cast<size_t>(chunk.layers.data() - layers.data());
      chunk.alike = std::span<const int>(alike).subspan(from, chunk.layers.size());
    }
    EXPECT_EQ(rank_memory(input, own_framework(), Precision::bf16), one_by_one) << round;
  }
}

TEST(Memory, FullRecomputationKeepsInputsAndOneWholeLayer) {
  std::vector<LayerSizes> layers(4, layer(0, 1000, 70));
  for (LayerSizes& one : layers) one.checkpoint_bytes = 10;
  RankMemoryInput input = rank_of(layers, Recompute::full);
  input.chunks[0].in_flight = 3;
  const MemoryBreakdown m = rank_memory(input, bare(), Precision::bf16);
  EXPECT_EQ(m.activations_bytes, 4 * 10 * 3);
  // The last layer's backward comes first, when no other input is released yet.
  EXPECT_GE(m.workspace_bytes, 70 + 1000 - 10);
  EXPECT_LE(m.workspace_bytes, 70 + 1000);
}

TEST(Memory, OffloadedInputsAreNotOnTheGpuButForTwo) {
  std::vector<LayerSizes> layers(4, layer(0, 1000, 70));
  for (LayerSizes& one : layers) one.checkpoint_bytes = 10;
  RankMemoryInput input = rank_of(layers, Recompute::full);
  input.chunks[0].in_flight = 3;
  input.microbatch = 2;
  const MemoryBreakdown here = rank_memory(input, bare(), Precision::bf16);
  EXPECT_EQ(here.offloaded_bytes, 0);
  input.chunks[0].recompute = Recompute::offload;
  const MemoryBreakdown m = rank_memory(input, bare(), Precision::bf16);
  EXPECT_EQ(m.activations_bytes, 0);
  EXPECT_EQ(m.offloaded_inputs_bytes, 4 * 10 * 3 * 2);
  EXPECT_EQ(m.offloaded_bytes, m.offloaded_inputs_bytes);
  // The block that is computed again has its own; two more are on their way.
  EXPECT_EQ(m.workspace_bytes, (70 + 1000 + 2 * 10) * 2);
  EXPECT_LT(m.total(), here.total());
  // With optimizer states beside them, and of some blocks.
  layers[1].parameters = 100;
  input.offload = Offload::optimizer;
  input.chunks[0].recompute = {Recompute::offload, 2, Recompute::none};
  const MemoryBreakdown both = rank_memory(input, own_framework(), Precision::bf16);
  EXPECT_EQ(both.offloaded_inputs_bytes, 2 * 10 * 3 * 2);
  EXPECT_EQ(both.offloaded_bytes, both.offloaded_inputs_bytes + 100 * 12);
  // What is not known cannot be offloaded.
  for (LayerSizes& one : layers) one.checkpoint_bytes = 0;
  EXPECT_EQ(rank_memory(input, bare(), Precision::bf16).offloaded_inputs_bytes, 0);
}

TEST(Memory, SelectiveRecomputationKeepsLessThanAllAndMoreThanInputs) {
  std::vector<LayerSizes> layers(4, layer(0, 1000, 0));
  for (LayerSizes& one : layers) {
    one.selective_bytes = 400;
    one.checkpoint_bytes = 10;
  }
  const auto kept = [&](Recompute recompute) {
    return rank_memory(rank_of(layers, recompute), bare(), Precision::bf16).activations_bytes;
  };
  EXPECT_EQ(kept(Recompute::none), 4000);
  EXPECT_EQ(kept(Recompute::selective), 1600);
  EXPECT_EQ(kept(Recompute::full), 40);
}

// The first layer of a model is no block: blocks count from the second.
TEST(Memory, SomeBlocksRecomputeMoreThanTheOthers) {
  std::vector<LayerSizes> layers(4, layer(0, 1000, 0));
  for (LayerSizes& one : layers) {
    one.light_bytes = 600;
    one.checkpoint_bytes = 10;
  }
  layers[0] = layer(0, 70, 0);
  RankMemoryInput input = rank_of(layers);
  input.chunks[0].recompute = {Recompute::full, 2, Recompute::light};
  EXPECT_EQ(rank_memory(input, bare(), Precision::bf16).activations_bytes, 70 + 2 * 10 + 600);
  // The last one needs what it computes again; when the others do, it has released what it held.
  EXPECT_EQ(rank_memory(input, bare(), Precision::bf16).workspace_bytes, 1000 - 600);
  input.chunks[0].has_previous = true;
  EXPECT_EQ(rank_memory(input, bare(), Precision::bf16).activations_bytes, 70 + 10 + 2 * 600);
}

// The first and the last layer of a model compute all of their backward at once.
TEST(Memory, ASplitBackwardKeepsWhatItLeavesOfBlocks) {
  std::vector<LayerSizes> layers(4, layer(0, 1000, 0));
  for (LayerSizes& one : layers) one.pending_bytes = 300;
  RankMemoryInput input = rank_of(layers);
  input.microbatches = 10;
  const auto at_delay = [&](int delay) {
    input.chunks[0].weight_delay = delay;
    const MemoryBreakdown memory = rank_memory(input, bare(), Precision::bf16);
    return std::pair(memory.activations_bytes, memory.workspace_bytes);
  };
  EXPECT_EQ(at_delay(kWholeBackward), std::pair(int64_t{4000}, int64_t{0}));
  EXPECT_EQ(at_delay(0), std::pair(int64_t{4000}, int64_t{0}));
  EXPECT_EQ(at_delay(3), std::pair(int64_t{4000 + 3 * 2 * 300}, int64_t{0}));
  input.microbatches = 2;
  EXPECT_EQ(at_delay(3).first, 4000 + 2 * 300);
  input.chunks[0].has_previous = input.chunks[0].has_next = true;
  EXPECT_EQ(at_delay(1).first, 4000 + 4 * 300);
  // More than it held; or, where it is not known, as much.
  for (LayerSizes& one : layers) one.pending_bytes = 1200;
  EXPECT_EQ(at_delay(1), std::pair(int64_t{4000 + 4 * 1200}, int64_t{4 * 200}));
  for (LayerSizes& one : layers) one.pending_bytes = 0;
  EXPECT_EQ(at_delay(1), std::pair(int64_t{4000 + 4 * 1000}, int64_t{0}));
}

TEST(Memory, WhereLessIsNotKnownRecomputationSavesNothing) {
  const std::vector<LayerSizes> layers(2, layer(0, 1000, 0));
  for (Recompute recompute : {Recompute::none, Recompute::selective, Recompute::full}) {
    const MemoryBreakdown m = rank_memory(rank_of(layers, recompute), bare(), Precision::bf16);
    EXPECT_EQ(m.activations_bytes, 2000);
    EXPECT_EQ(m.workspace_bytes, 0);
  }
}

TEST(Memory, ChunksAddUpTheirActivationsButOnlyOneIsInItsBackward) {
  const std::vector<LayerSizes> first = {layer(10, 100, 5)}, second = {layer(20, 200, 9)};
  RankMemoryInput input = rank_of(first);
  input.chunks.push_back(rank_of(second).chunks[0]);
  input.chunks[0].in_flight = 3;
  input.chunks[1].in_flight = 2;
  const MemoryBreakdown m = rank_memory(input, bare(), Precision::fp32);
  EXPECT_EQ(m.weights_bytes, 30 * 4);
  EXPECT_EQ(m.activations_bytes, 3 * 100 + 2 * 200);
  EXPECT_EQ(m.workspace_bytes, 9);
}

TEST(Memory, PrecisionSetsTheSizeOfWeightsMomentsAndMasterCopies) {
  const std::vector<LayerSizes> layers = {layer(100, 0, 0)};
  const MemoryBreakdown fp64 = rank_memory(rank_of(layers), own_framework(), Precision::fp64);
  EXPECT_EQ(fp64.weights_bytes, 800);
  EXPECT_EQ(fp64.optimizer_bytes, 1600);
  EXPECT_EQ(fp64.master_bytes, 0);
  const MemoryBreakdown fp32 = rank_memory(rank_of(layers), own_framework(), Precision::fp32);
  EXPECT_EQ(fp32.weights_bytes, 400);
  EXPECT_EQ(fp32.optimizer_bytes, 800);
  EXPECT_EQ(fp32.master_bytes, 0);
  const MemoryBreakdown bf16 = rank_memory(rank_of(layers), own_framework(), Precision::bf16);
  EXPECT_EQ(bf16.weights_bytes, 200);
  EXPECT_EQ(bf16.gradients_bytes, 400);  // accumulated in 32 bit
  EXPECT_EQ(bf16.optimizer_bytes, 800);  // two 32-bit moments
  EXPECT_EQ(bf16.master_bytes, 400);     // and the 32-bit master copy
}

TEST(Memory, GradientsMayBeWiderThanWeightsAndHaveACopy) {
  const std::vector<LayerSizes> layers = {layer(100, 0, 0)};
  FrameworkStyle style = bare();
  style.gradient_bytes = 4;
  style.gradient_copy_bytes = 2;
  EXPECT_EQ(rank_memory(rank_of(layers), style, Precision::bf16).gradients_bytes, 600);
}

TEST(Memory, AShardedOptimizerHoldsItsShareOfMomentsAndMasterCopies) {
  const std::vector<LayerSizes> layers = {layer(1000, 0, 0)};
  RankMemoryInput input = rank_of(layers);
  input.zero = Zero::optimizer;
  input.replicas = 4;
  MemoryBreakdown m = rank_memory(input, bare(), Precision::bf16);
  EXPECT_EQ(m.weights_bytes, 2000);
  EXPECT_EQ(m.gradients_bytes, 2000);
  EXPECT_EQ(m.master_bytes, 1000);
  EXPECT_EQ(m.optimizer_bytes, 2000);
  // A share that does not divide is rounded up.
  input.replicas = 3;
  EXPECT_EQ(rank_memory(input, bare(), Precision::bf16).optimizer_bytes, 2667);
  // A single replica cannot shard.
  input.replicas = 1;
  EXPECT_EQ(rank_memory(input, bare(), Precision::bf16).optimizer_bytes, 8000);
  // A framework that always shards does so without the plan's zero1.
  FrameworkStyle sharded = bare();
  sharded.zero = Zero::optimizer;
  input.replicas = 4;
  input.zero = Zero::none;
  EXPECT_EQ(rank_memory(input, sharded, Precision::bf16).optimizer_bytes, 2000);
  EXPECT_EQ(rank_memory(input, bare(), Precision::bf16).optimizer_bytes, 8000);
}

TEST(Memory, ShardedGradientsAreWholeOfTwoNeighbours) {
  const std::vector<LayerSizes> layers = {layer(1000, 0, 0), layer(200, 0, 0), layer(300, 0, 0),
                                          layer(500, 0, 0)};
  RankMemoryInput input = rank_of(layers);
  input.zero = Zero::gradients;
  input.replicas = 4;
  FrameworkStyle style = bare();
  style.gradient_bytes = 4;
  const auto gradients = [&] { return rank_memory(input, style, Precision::bf16).gradients_bytes; };
  // A quarter of the sums; the largest layer, and the largest that is beside one of at least its size.
  EXPECT_EQ(gradients(), 4 * (2000 / 4 + 1000 + 300));
  EXPECT_EQ(rank_memory(input, style, Precision::bf16).weights_bytes, 2 * 2000);
  EXPECT_EQ(rank_memory(input, style, Precision::bf16).optimizer_bytes, 8 * 2000 / 4);
  // What the first and the last layer share is summed at the end, and so it stays whole.
  input.tied_parameters = 900;
  EXPECT_EQ(gradients(), 4 * (1100 / 4 + 500 + 300 + 900));
  // Never more than all of them beside the part that is summed.
  const std::vector<LayerSizes> one = {layer(1000, 0, 0)};
  input.chunks[0].layers = one;
  input.tied_parameters = 0;
  EXPECT_EQ(gradients(), 4 * (1000 / 4 + 1000));
  input.replicas = 1;
  EXPECT_EQ(gradients(), 4 * 1000);
}

TEST(Memory, ShardedParametersAreWholeOfTwoNeighbours) {
  std::vector<LayerSizes> layers = {layer(1000, 0, 0), layer(200, 0, 0), layer(300, 0, 0)};
  layers[1].frozen_parameters = 500;
  RankMemoryInput input = rank_of(layers);
  FrameworkStyle style = bare();
  style.zero = Zero::parameters;
  input.replicas = 4;
  const MemoryBreakdown m = rank_memory(input, style, Precision::bf16);
  // A quarter of 1,500 and of 500 frozen ones; 1,000 and 700 are whole.
  EXPECT_EQ(m.weights_bytes, 2 * (375 + 125 + 1700));
  EXPECT_EQ(m.frozen_bytes, 2 * 125);
  EXPECT_EQ(m.gradients_bytes, 2 * (375 + 1200));
  EXPECT_EQ(m.master_bytes, 4 * 375);
}

TEST(Memory, TiedEndsCountOnceOnARankThatHoldsBoth) {
  std::vector<LayerSizes> layers = {layer(500, 0, 0), layer(100, 0, 0), layer(520, 0, 0)};
  layers[2].tied_parameters = 500;
  RankMemoryInput input = rank_of(layers);
  EXPECT_EQ(rank_memory(input, bare(), Precision::bf16).weights_bytes, 2 * 1120);
  input.both_ends = true;
  EXPECT_EQ(rank_memory(input, bare(), Precision::bf16).weights_bytes, 2 * 620);
}

TEST(Memory, TheSyncBucketIsAsLargeAsItsPiecesAndNeverLargerThanAllGradients) {
  const std::vector<LayerSizes> layers = {layer(1000, 0, 0), layer(3000, 0, 0)};
  RankMemoryInput input = rank_of(layers);
  input.replicas = 2;
  FrameworkStyle style;
  style.sync_bucket_bytes = 4000;
  const auto bucket = [&] { return rank_memory(input, style, Precision::fp32).communication_bytes; };
  EXPECT_EQ(bucket(), 4000);
  style.sync_copies = 2;
  EXPECT_EQ(bucket(), 8000);
  style.sync_copies = 1;
  style.sync_whole_layers = true;  // the largest layer has 12,000 bytes of gradients
  EXPECT_EQ(bucket(), 16000);
  style.sync_bucket_bytes = 5000;
  EXPECT_EQ(bucket(), 16000);
  style.sync_buffer = false;
  EXPECT_EQ(bucket(), 0);
  style.sync_buffer = true;
  input.replicas = 1;
  EXPECT_EQ(bucket(), 0);
}

TEST(Memory, FragmentationIsAPartOfEverythingButTheBase) {
  const std::vector<LayerSizes> layers = {layer(100, 500, 0)};
  RankMemoryInput input = rank_of(layers);
  input.base_bytes = 1'000'000;
  FrameworkStyle style = bare();
  style.fragmentation = 0.1;
  const MemoryBreakdown m = rank_memory(input, style, Precision::fp32);
  EXPECT_EQ(m.fragmentation_bytes, (100 * 16 + 500) / 10);
  EXPECT_EQ(m.total(), 100 * 16 + 500 + 210 + 1'000'000);
}

TEST(Memory, BuffersThatStayAreThereFromTheSecondMicrobatchOn) {
  std::vector<LayerSizes> layers = {layer(0, 0, 0), layer(0, 0, 0)};
  layers[0].persistent_bytes = 7;
  layers[1].persistent_bytes = 100;
  RankMemoryInput input = rank_of(layers);
  input.microbatch = 3;
  EXPECT_EQ(rank_memory(input, bare(), Precision::bf16).workspace_bytes, 0);
  input.microbatches = 2;
  EXPECT_EQ(rank_memory(input, bare(), Precision::bf16).workspace_bytes, 300);
}

TEST(Memory, GatheredActivationsAreHeldPerBuffer) {
  const std::vector<LayerSizes> layers = {layer(0, 0, 0)};
  RankMemoryInput input = rank_of(layers);
  input.gathered_elements = 1000;
  input.microbatch = 2;
  FrameworkStyle style = bare();
  style.gather_buffers = 3.5;
  EXPECT_EQ(rank_memory(input, style, Precision::bf16).communication_bytes, 3.5 * 1000 * 2 * 2);
}

TEST(Memory, AbsurdSizesNeverWrapAround) {
  const std::vector<LayerSizes> layers(100, layer(int64_t{1} << 42, int64_t{1} << 42, int64_t{1} << 42));
  RankMemoryInput input = rank_of(layers);
  input.microbatch = 1'000'000;
  input.chunks[0].in_flight = 1000;
  for (Precision precision : {Precision::fp32, Precision::bf16, Precision::fp64}) {
    const MemoryBreakdown m = rank_memory(input, own_framework(), precision);
    EXPECT_GT(m.activations_bytes, int64_t{1} << 57);
    EXPECT_GT(m.total(), int64_t{1} << 57);
  }
}

}  // namespace
}  // namespace sailor
