#include "planner/simulator/native_model.h"

#include <gtest/gtest.h>

#include "planner/plan/validate.h"
#include "planner/simulator/iteration_model.h"
#include "planner/simulator/style_schedule.h"
#include "planner/spec/error.h"
#include "tests/unit/planner/instance.h"

namespace sailor {
namespace {

using test::Instance;

Instance two_types() {
  Instance in = test::empty_instance(4, 8);
  in.add_type("fast", 0.02, int64_t{1} << 40, 3.6);
  in.add_type("slow", 0.05, int64_t{1} << 40, 1.8);
  in.add_node("f", "fast", 4);
  in.add_node("s", "slow", 4);
  return in;
}

Prediction with_style(const Instance& in, const FrameworkStyle& style, const Plan& plan) {
  return simulate({in.job, in.snapshot, in.catalog, in.profiles, style}, plan);
}

// Our own trainer, but for the overlap of its sums with the last backward.
FrameworkStyle sums_afterwards() {
  FrameworkStyle style = own_framework();
  style.gradient_sync = FrameworkStyle::Sync::after_backward;
  return style;
}

TEST(NativeModel, OneGpuNeedsNoNetwork) {
  Instance in = two_types();
  in.profiles.network = {};
  in.profiles.layers["fast"].overheads = {1000, 0.5};
  const Prediction p = simulate(in.context(), test::make_plan(in, 1, {{{0, 6, "fast", 1}}}));
  const double per_microbatch = 0.02 * (4 + 0.2 + 1.3), update = 6 * 0.02 * 0.05;
  EXPECT_NEAR(p.pipeline_s, 8 * per_microbatch, 1e-12);
  EXPECT_NEAR(p.update_s, update, 1e-12);
  EXPECT_DOUBLE_EQ(p.sync_s, 0);
  EXPECT_NEAR(p.iteration_s, 8 * per_microbatch + update + 0.5, 1e-12);
  EXPECT_EQ(p.stages.at(0).memory.base_bytes, 1000);
}

TEST(NativeModel, AMissingLinkIsAnErrorThatNamesThePair) {
  Instance in = two_types();
  in.profiles.network = {};
  const Plan plan = test::make_plan(in, 1, {{{0, 3, "fast", 1}, {3, 6, "slow", 1}}});
  try {
    simulate(in.context(), plan);
    FAIL() << "a link that nobody measured was free";
  } catch (const InputError& e) {
    EXPECT_NE(std::string(e.what()).find("\"fast\""), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("\"slow\""), std::string::npos) << e.what();
  }
}

TEST(NativeModel, TheSlowestPipelineWithItsOwnMicrobatchesDecides) {
  const Instance in = two_types();
  Plan plan = test::make_plan(in, 1, {{{0, 6, "fast", 1}}, {{0, 6, "slow", 1}}});
  const double even = simulate(in.context(), plan).pipeline_s;
  EXPECT_NEAR(even, 4 * 0.05 * 5.5, 1e-12);
  plan.pipelines[0].microbatches = 6;
  plan.pipelines[1].microbatches = 2;
  EXPECT_NEAR(simulate(in.context(), plan).pipeline_s, 6 * 0.02 * 5.5, 1e-12);
}

TEST(NativeModel, MicrobatchesOfUnlikeSizesHaveTheirOwnTimeMessagesAndMemory) {
  Instance in = two_types();
  in.set_network(0, 1e9);
  const std::vector<test::StageSpec> two_stages = {{0, 3, "fast", 1}, {3, 6, "fast", 1}};
  const Prediction ones = simulate(in.context(), test::make_plan(in, 1, {two_stages, two_stages}));
  const Prediction twos = simulate(in.context(), test::make_plan(in, 2, {two_stages, two_stages}));
  Plan plan = test::make_plan(in, 1, {two_stages, two_stages});
  plan.pipelines[1].microbatches = 2;
  plan.pipelines[1].microbatch = 2;
  const Prediction both = simulate(in.context(), plan);
  for (size_t i = 0; i < 4; ++i) {
    const StagePrediction &own = both.stages.at(i), &alike = (i < 2 ? ones : twos).stages.at(i);
    EXPECT_EQ(own.forward_s, alike.forward_s) << i;
    EXPECT_EQ(own.send_forward_s, alike.send_forward_s) << i;
    EXPECT_EQ(own.memory.total(), alike.memory.total()) << i;
  }
  EXPECT_NEAR(both.pipeline_s, std::max(ones.pipeline_s, twos.pipeline_s), 1e-12);
  // Which of them is the plan's, and which of them its own, makes no difference.
  plan.microbatch = 2;
  plan.pipelines[0].microbatch = 1;
  plan.pipelines[1].microbatch.reset();
  EXPECT_EQ(simulate(in.context(), plan).iteration_s, both.iteration_s);
  EXPECT_THROW(simulate(in.context(), plan, CostModel::published), InputError);
}

TEST(NativeModel, GradientSyncOfUnlikeCutsGoesByCommonLayers) {
  Instance in = two_types();
  in.set_network(0, 1e9);
  // Layers 0-1 | 2 | 3-5 are held by different pairs of stages.
  const Plan plan = test::make_plan(
      in, 1, {{{0, 2, "fast", 1}, {2, 6, "fast", 1}}, {{0, 3, "slow", 1}, {3, 6, "slow", 1}}});
  const Prediction p = with_style(in, sums_afterwards(), plan);
  const double per_layer = 2 * 1 * (4e6 / 2) / 1e9;
  EXPECT_NEAR(p.stages.at(0).sync_s, 2 * per_layer, 1e-12);
  EXPECT_NEAR(p.stages.at(1).sync_s, 4 * per_layer, 1e-12);
  EXPECT_NEAR(p.stages.at(2).sync_s, 3 * per_layer, 1e-12);
  EXPECT_NEAR(p.stages.at(3).sync_s, 3 * per_layer, 1e-12);
}

TEST(NativeModel, SummingCostsTheProcessorsOfTheRanksToo) {
  Instance in = two_types();
  in.set_network(0, 1e9);
  const Plan plan = test::make_plan(in, 1, {{{0, 6, "fast", 1}}, {{0, 6, "slow", 1}}});
  const double links_s = simulate(in.context(), plan).stages.at(0).sync_s;
  in.profiles.layers["fast"].overheads.sync_s_per_byte = 1e-9;
  in.profiles.layers["slow"].overheads.sync_s_per_byte = 3e-9;  // the slower one decides
  EXPECT_NEAR(simulate(in.context(), plan).stages.at(0).sync_s, links_s + 6 * 4e6 * 3e-9, 1e-12);
}

TEST(NativeModel, FewMicrobatchesHoldFewActivations) {
  const Instance in = two_types();
  Plan plan = test::make_plan(in, 1, {{{0, 2, "fast", 1}, {2, 4, "fast", 1}, {4, 6, "fast", 1}}});
  EXPECT_EQ(simulate(in.context(), plan).stages.at(0).in_flight, 3);
  plan.pipelines[0].microbatches = 2;
  const Prediction p = simulate(in.context(), plan);
  EXPECT_EQ(p.stages.at(0).in_flight, 2);
  EXPECT_EQ(p.stages.at(0).memory.activations_bytes, 2 * 2 * 4'000'000);
}

TEST(NativeModel, APipelineThatDoesNotOffloadNeedsTheMemoryForIt) {
  Instance in = two_types();
  in.catalog.gpu_types.at("fast").node.host_bytes_per_s = 1e9;
  Plan plan = test::make_plan(in, 1, {{{0, 6, "fast", 1}}, {{0, 6, "fast", 1}}});
  plan.pipelines[0].stages[0].offload = Offload::optimizer;
  const Prediction enough = simulate(in.context(), plan);
  in.catalog.gpu_types.at("fast").memory_bytes =
      (enough.stages.at(0).memory.total() + enough.stages.at(1).memory.total()) / 2;
  EXPECT_FALSE(simulate(in.context(), plan).fits);
  const PlanningContext context = in.context();
  native::StageKinds kinds(context);
  bool fits = true;
  native::IterationModel(kinds).iteration_if_fits(native::compact(plan, kinds), 1e9, fits);
  EXPECT_FALSE(fits);
  plan.pipelines[1].stages[0].offload = Offload::optimizer;
  native::IterationModel(kinds).iteration_if_fits(native::compact(plan, kinds), 1e9, fits);
  EXPECT_TRUE(fits);
}

// A search asks for the memory of millions of stages, of which it remembers the latest.
TEST(NativeModel, TheMemoryOfUnlikeStagesIsNotMixedUp) {
  const Instance in = two_types();
  const PlanningContext context = in.context();
  native::StageKinds kinds(context);
  native::StageMemoryInput stage;
  stage.kind = kinds.number("fast", "z1", {});
  stage.end_layer = 3;
  stage.several_microbatches = true;
  stage.zero = Zero::optimizer;
  native::IterationModel remembering(kinds);
  for (const int in_flight : {16, 15})
    for (stage.replicas = 1; stage.replicas < 64; ++stage.replicas)
      for (stage.weight_delay = kWholeBackward; stage.weight_delay < in_flight; ++stage.weight_delay) {
        stage.in_flight = in_flight;
        ASSERT_EQ(remembering.missing_bytes(stage), native::IterationModel(kinds).missing_bytes(stage))
            << stage.replicas << " replicas, delay " << stage.weight_delay;
      }
}

TEST(NativeModel, PartsAddUpToTheIteration) {
  const Instance in = two_types();
  const Prediction p = simulate(
      in.context(), test::make_plan(in, 2, {{{0, 3, "fast", 2}, {3, 6, "slow", 1}}, {{0, 6, "slow", 2}}}));
  EXPECT_NEAR(p.iteration_s, p.pipeline_s + p.sync_s + p.update_s + p.overhead_s, 1e-12);
  for (const StagePrediction& s : p.stages) {
    EXPECT_GT(s.busy_fraction, 0);
    EXPECT_LE(s.busy_fraction, 1);
  }
}

TEST(NativeModel, SplitTokensSaveWhatRanksOfATpGroupHoldTwice) {
  Instance in = two_types();
  in.set_network(0, 1e9);
  for (auto& [shape, layers] : in.profiles.sizes.by_shape)
    for (LayerSizes& layer : layers) {
      layer.activation_bytes = 1'000'000 + 3'000'000 / shape.tp;
      layer.checkpoint_bytes = 400'000;
    }
  Plan plan = test::make_plan(in, 1, {{{0, 3, "fast", 2}, {3, 6, "fast", 2}}});
  const Prediction plain = simulate(in.context(), plan);
  plan.sequence_parallel = true;
  const Prediction split = simulate(in.context(), plan);
  // Two microbatches in flight; messages of 400,000 bytes: one received and two on their way on each side.
  EXPECT_EQ(plain.stages.at(0).memory.activations_bytes, 2 * 3 * 2'500'000);
  EXPECT_EQ(split.stages.at(0).memory.activations_bytes, 2 * 3 * 2'000'000);
  EXPECT_EQ(plain.stages.at(1).memory.communication_bytes, (1 + 2) * 400'000);
  EXPECT_EQ(split.stages.at(1).memory.communication_bytes, (1 + 2) * 200'000);
  EXPECT_EQ(split.stages.at(0).memory.weights_bytes, plain.stages.at(0).memory.weights_bytes);
  // Two blocks of a stage gather two inputs of 128 x 64 elements again, half of each. What was received is
  // not gathered.
  const double gather_s = 400'000 / 2 / 1e9;
  EXPECT_EQ(split.stages.at(0).forward_s, plain.stages.at(0).forward_s);
  EXPECT_NEAR(split.stages.at(1).forward_s, plain.stages.at(1).forward_s - gather_s, 1e-12);
  EXPECT_NEAR(split.stages.at(0).backward_s - plain.stages.at(0).backward_s,
              2 * 2 * 128 * 64 * 4 / 2 / 1e9 - gather_s, 1e-12);
  EXPECT_EQ(split.stages.at(0).send_forward_s, plain.stages.at(0).send_forward_s);
  for (PlanStage& stage : plan.pipelines[0].stages) stage.recompute = Recompute::full;
  EXPECT_EQ(simulate(in.context(), plan).stages.at(0).memory.activations_bytes, 2 * 3 * 200'000);
}

TEST(NativeModel, TokensOfOneGpuAreNotSplit) {
  const Instance in = two_types();
  Plan plan = test::make_plan(in, 1, {{{0, 3, "fast", 1}, {3, 6, "slow", 1}}});
  const Prediction plain = simulate(in.context(), plan);
  plan.sequence_parallel = true;
  const Prediction split = simulate(in.context(), plan);
  EXPECT_EQ(split.iteration_s, plain.iteration_s);
  EXPECT_EQ(split.peak_memory_bytes(), plain.peak_memory_bytes());
}

TEST(NativeModel, RecomputationIsPaidInTheBackwardByBlocksOnly) {
  Instance in = two_types();
  for (LayerTimes& t : in.profiles.layers["fast"].cells[{1, {1}}]) {
    t.attention_s = t.forward_s / 4;
    t.light_s = t.forward_s / 20;
    t.mlp_s = t.forward_s / 2;
  }
  Plan plan = test::make_plan(in, 1, {{{0, 3, "fast", 1}, {3, 6, "fast", 1}}});
  const Prediction none = simulate(in.context(), plan);
  const double block_s = 0.02 / 3;
  for (PlanStage& stage : plan.pipelines[0].stages) stage.recompute = Recompute::full;
  const Prediction full = simulate(in.context(), plan);
  EXPECT_NEAR(full.stages[0].backward_s - none.stages[0].backward_s, 2 * block_s, 1e-12);
  EXPECT_NEAR(full.stages[1].backward_s - none.stages[1].backward_s, 2 * block_s, 1e-12);
  EXPECT_EQ(full.stages[1].forward_s, none.stages[1].forward_s);
  for (PlanStage& stage : plan.pipelines[0].stages) stage.recompute = Recompute::selective;
  const Prediction selective = simulate(in.context(), plan);
  EXPECT_NEAR(selective.stages[1].backward_s - none.stages[1].backward_s, 2 * block_s / 4, 1e-12);
  for (PlanStage& stage : plan.pipelines[0].stages) stage.recompute = {Recompute::mlp, 1, Recompute::light};
  const Prediction mixed = simulate(in.context(), plan);
  for (const size_t stage : {0, 1})
    EXPECT_NEAR(mixed.stages[stage].backward_s - none.stages[stage].backward_s, block_s / 2 + block_s / 20,
                1e-12);
}

TEST(NativeModel, InterleavedChunksShareTheirGpus) {
  const Instance in = two_types();
  // Two groups of GPUs with two chunks each.
  Plan plan =
      test::make_plan(in, 1, {{{0, 1, "fast", 1}, {1, 3, "fast", 1}, {3, 5, "fast", 1}, {5, 6, "fast", 1}}});
  plan.interleave = 2;
  EXPECT_EQ(num_ranks(plan), 2);
  const Prediction p = simulate(in.context(), plan);
  ASSERT_EQ(p.stages.size(), 4u);
  // Chunks 0 and 2 are on one rank: its memory is of both.
  EXPECT_EQ(p.stages[0].memory.weights_bytes, 3 * 4'000'000);
  EXPECT_EQ(p.stages[2].memory.weights_bytes, 3 * 4'000'000);
  EXPECT_EQ(p.stages[1].memory.total(), p.stages[3].memory.total());
  // Of 8 microbatches, the first group warms up with 2 x 1 + 2 = 4 forwards and holds one more.
  EXPECT_EQ(p.stages[0].in_flight + p.stages[2].in_flight, 5);
  EXPECT_EQ(p.stages[0].in_flight, 3);
  EXPECT_EQ(p.stages[1].in_flight + p.stages[3].in_flight, 3);
  const double all_s = 8 * 0.02 * (4 + 0.2 + 1.3);
  EXPECT_GT(p.pipeline_s, all_s / 2);
  EXPECT_LT(p.pipeline_s, all_s);
  EXPECT_NEAR(p.iteration_s, p.pipeline_s + p.sync_s + p.update_s + p.overhead_s, 1e-12);
  // The GPUs are paid once.
  EXPECT_NEAR(p.spent[Expense::cost].gpus, p.iteration_s * 2 * 3.6 / 3600, 1e-12);
}

TEST(NativeModel, AnInterleavedScheduleThatDoesNotExistIsAnError) {
  const Instance in = two_types();
  Plan plan =
      test::make_plan(in, 1, {{{0, 2, "fast", 1}, {2, 4, "fast", 1}, {4, 5, "fast", 1}, {5, 6, "fast", 1}}});
  plan.interleave = 2;
  plan.pipelines[0].microbatches = 3;  // no multiple of the two groups
  EXPECT_THROW(simulate(in.context(), plan), std::invalid_argument);
  plan.interleave = 4;  // one group
  EXPECT_THROW(simulate(in.context(), plan), std::invalid_argument);
}

TEST(NativeModel, OverlappedSumsHideBehindTheLastBackward) {
  Instance in = two_types();
  const Plan plan = test::make_plan(in, 1, {{{0, 6, "fast", 1}}, {{0, 6, "fast", 1}}});
  FrameworkStyle style;
  const double after = with_style(in, style, plan).sync_s;
  EXPECT_GT(after, 0);
  style.gradient_sync = FrameworkStyle::Sync::overlapped;
  style.overlap = 0.5;
  EXPECT_NEAR(with_style(in, style, plan).sync_s, after / 2, 1e-12);
  style.overlap = 1;
  EXPECT_NEAR(with_style(in, style, plan).sync_s, 0, 1e-12);
  // Not more of it than the backward is long.
  in.set_network(1e-5, 1e8);
  const double slow = with_style(in, FrameworkStyle(), plan).sync_s;
  const double window = 2.0 / 3 * 0.02 * 5.5;
  ASSERT_GT(slow, window);
  EXPECT_NEAR(with_style(in, style, plan).sync_s, slow - window, 1e-9);
}

TEST(NativeModel, AllSumsOfAStageHideBehindItsLastBackward) {
  Instance in = two_types();
  in.set_network(0, 1e10);
  // Alike in time, but cut differently: the first stage of each pipeline takes part in two sums or one.
  const Plan plan = test::make_plan(
      in, 1, {{{0, 2, "fast", 1}, {2, 6, "fast", 1}}, {{0, 4, "fast", 1}, {4, 6, "fast", 1}}});
  FrameworkStyle style;
  ASSERT_GT(with_style(in, style, plan).sync_s, 0);
  style.gradient_sync = FrameworkStyle::Sync::overlapped;
  style.overlap = 1;
  // A millisecond and a half of sums in all, backwards of more than ten.
  EXPECT_NEAR(with_style(in, style, plan).sync_s, 0, 1e-12);
}

TEST(NativeModel, OurOwnTrainerLeavesTheLowestLayersToBeSummedAfterTheBackward) {
  Instance in = two_types();
  in.set_network(0, 1e9);
  const Plan plan = test::make_plan(in, 1, {{{0, 6, "fast", 1}}, {{0, 6, "fast", 1}}});
  // Two layers of 4 MB make a bucket of 4 MiB: the lowest is done when the backward is.
  EXPECT_NEAR(simulate(in.context(), plan).sync_s, with_style(in, sums_afterwards(), plan).sync_s / 3, 1e-9);
  // Layers of 8 MB are buckets of their own; the embedding's backward, a fifth of a block's, is too short for
  // the sum of the first block to hide behind it.
  for (LayerSizes& layer : in.profiles.sizes.by_shape[{1}]) layer.parameters *= 2;
  const double layer_s = with_style(in, sums_afterwards(), plan).sync_s / 6, embedding_s = 0.2 * 0.02 * 2 / 3;
  ASSERT_GT(layer_s, embedding_s);
  ASSERT_LT(layer_s, 5 * embedding_s + embedding_s);
  EXPECT_NEAR(simulate(in.context(), plan).sync_s, layer_s - embedding_s + layer_s, 1e-9);
}

TEST(NativeModel, AShardedOptimizerUpdatesItsShareAndGathers) {
  Instance in = two_types();
  in.set_network(0, 1e9);
  Plan plan = test::make_plan(in, 1, {{{0, 6, "fast", 1}}, {{0, 6, "fast", 1}}});
  const Prediction whole = with_style(in, sums_afterwards(), plan);
  plan.zero = Zero::optimizer;
  const Prediction sharded = with_style(in, sums_afterwards(), plan);
  EXPECT_NEAR(sharded.sync_s, whole.sync_s / 2, 1e-9);
  EXPECT_NEAR(sharded.update_s, whole.update_s / 2 + sharded.sync_s, 1e-9);
  EXPECT_EQ(sharded.stages[0].memory.optimizer_bytes, whole.stages[0].memory.optimizer_bytes / 2);
}

TEST(NativeModel, OffloadedInputsTakeTimeWhereTheLinkToTheHostIsSlowerThanABlock) {
  test::Instance in = test::empty_instance(4, 8);
  in.add_type("a", 0.02, 1 << 30, 1.0);
  for (auto& [shape, layers] : in.profiles.sizes.by_shape)
    for (size_t layer = 1; layer <= 4; ++layer) {
      layers[layer].activation_bytes = 10'000'000;
      layers[layer].checkpoint_bytes = 1'000'000;
    }
  Plan plan = test::make_plan(in, 1, {{{0, 3, "a", 1}, {3, 6, "a", 1}}});
  const auto predicted = [&](const StageRecompute& recompute) {
    for (PlanStage& stage : plan.pipelines[0].stages) stage.recompute = recompute;
    return simulate(in.context(), plan, CostModel::native);
  };
  const Prediction here = predicted(Recompute::full);
  EXPECT_THROW(predicted(Recompute::offload), InputError) << "its rate is not known";
  GpuType& type = in.catalog.gpu_types["a"];
  type.node.host_bytes_per_s = 1e9;
  EXPECT_NEAR(predicted(Recompute::offload).iteration_s, here.iteration_s, 1e-12) << "beside the block";
  EXPECT_LT(predicted(Recompute::offload).stages[0].memory.total(), here.stages[0].memory.total());
  // In flight at the first stage: two microbatches of two blocks.
  EXPECT_EQ(predicted(Recompute::offload).stages[0].memory.offloaded_bytes, 4'000'000);
  // Every block of every microbatch waits for both copies, beyond its forward, and that and its backward.
  const double forward_s = here.stages[0].forward_s / 3, backward_s = here.stages[0].backward_s / 3;
  type.node.host_bytes_per_s = 1e6 / (forward_s + backward_s);
  const double waits_s = predicted(Recompute::offload).stages[0].backward_s - here.stages[0].backward_s;
  EXPECT_GT(waits_s, 0);
  EXPECT_LT(waits_s, 2 * 2 * (forward_s + backward_s));
  EXPECT_NEAR(
      predicted({Recompute::offload, 1, Recompute::full}).stages[0].backward_s - here.stages[0].backward_s,
      waits_s / 2, 1e-12);
  type.node.host_bytes_per_s = 1e9;
  type.memory_bandwidth_bytes_per_s = 1e9;
  EXPECT_NEAR(predicted(Recompute::offload).stages[0].backward_s - here.stages[0].backward_s, 2 * 2e-3, 1e-12)
      << "both copies pass the memory of the GPU";
}

TEST(NativeModel, AStepWithOffloadedStatesTakesAsLongAsTheLinkToTheHost) {
  test::Instance in = test::empty_instance(4, 8);
  in.add_type("a", 0.02, 1 << 30, 1.0);
  Plan plan = test::make_plan(in, 1, {{{0, 6, "a", 1}}, {{0, 6, "a", 1}}});
  const Prediction whole = simulate(in.context(), plan, CostModel::native);
  for (PlanPipeline& pipeline : plan.pipelines) pipeline.stages[0].offload = Offload::optimizer;
  EXPECT_THROW(simulate(in.context(), plan, CostModel::native), InputError) << "its rate is not known";
  in.catalog.gpu_types["a"].node.host_bytes_per_s = 1e12;
  const Prediction fast = simulate(in.context(), plan, CostModel::native);
  EXPECT_NEAR(fast.iteration_s, whole.iteration_s, 1e-12) << "the step takes longer than the link";
  EXPECT_EQ(fast.stages[0].memory.offloaded_bytes, whole.stages[0].memory.optimizer_bytes);
  in.catalog.gpu_types["a"].node.host_bytes_per_s = 1e8;
  // Two moments of six layers with a million of parameters.
  const double link_s = 6 * 1e6 * 8 / 1e8;
  const Prediction slow = simulate(in.context(), plan, CostModel::native);
  EXPECT_NEAR(slow.update_s, link_s, 1e-9);
  EXPECT_NEAR(slow.iteration_s - whole.iteration_s, link_s - whole.update_s, 1e-9);
  plan.pipelines[1].stages[0].offload = Offload::none;
  EXPECT_NEAR(simulate(in.context(), plan, CostModel::native).iteration_s, slow.iteration_s, 1e-9)
      << "one that waits is enough";
  plan.pipelines[1].stages[0].offload = Offload::optimizer;
  plan.zero = Zero::optimizer;
  const Prediction sharded = simulate(in.context(), plan, CostModel::native);
  plan.pipelines[0].stages[0].offload = plan.pipelines[1].stages[0].offload = Offload::none;
  EXPECT_NEAR(sharded.update_s - simulate(in.context(), plan, CostModel::native).update_s,
              (link_s - whole.update_s) / 2, 1e-9);
  plan.zero = Zero::none;
  plan.pipelines[0].stages[0].offload = Offload::optimizer;
  in.job.training.ema.emplace();
  EXPECT_NEAR(simulate(in.context(), plan, CostModel::native).update_s, 2 * link_s, 1e-9)
      << "an average, and what it is of once more";
}

TEST(NativeModel, ShardedGradientsAreSummedInEveryMicrobatch) {
  const Instance in = two_types();
  const auto predict = [&](double bytes_per_s, FrameworkStyle::Sync sync, Zero zero, int a, int b) {
    Instance with = in;
    with.set_network(0, bytes_per_s);
    FrameworkStyle style;
    style.sums = FrameworkStyle::Sums::rings;
    style.gradient_sync = sync;
    style.overlap = 1;
    style.sync_whole_layers = true;
    Plan plan = test::make_plan(with, 1, {{{0, 6, "fast", 1}}, {{0, 6, "fast", 1}}});
    plan.pipelines[0].microbatches = a;
    plan.pipelines[1].microbatches = b;
    plan.global_batch = a + b;
    with.job.training.global_batch = plan.global_batch;
    plan.zero = zero;
    return with_style(with, style, plan);
  };
  using Sync = FrameworkStyle::Sync;
  const double bytes_per_s = 1e9;
  const double pass_s = 6 * 4e6 / 2 / bytes_per_s;
  // Afterwards: a pass for each microbatch instead of one.
  const Prediction one = predict(bytes_per_s, Sync::after_backward, Zero::optimizer, 4, 4);
  const Prediction each = predict(bytes_per_s, Sync::after_backward, Zero::gradients, 4, 4);
  EXPECT_NEAR(each.pipeline_s, one.pipeline_s + 4 * pass_s, 1e-9);
  // A pipeline with a third of the microbatches goes through three rounds in each of its own.
  const Prediction unlike = predict(bytes_per_s, Sync::after_backward, Zero::gradients, 6, 2);
  EXPECT_NEAR(unlike.stages.at(1).backward_s - unlike.stages.at(0).backward_s, 2 * pass_s, 1e-9);
  // Behind the backwards, only those of the lowest layers are left at the end.
  const Prediction hidden = predict(bytes_per_s, Sync::overlapped, Zero::gradients, 4, 4);
  EXPECT_NEAR(hidden.pipeline_s, one.pipeline_s, 1e-9);
  EXPECT_NEAR(hidden.sync_s, pass_s / 6, 1e-9);
  // A slow network makes the backwards wait: each layer for the one after it. The first layer's sums run
  // through the next forward.
  const double slow = 1e8, layer_s = 4e6 / 2 / slow;
  const Prediction waits = predict(slow, Sync::overlapped, Zero::gradients, 4, 4);
  const double last_s = 1.3 / 5.5 * one.stages.at(0).backward_s;  // of the last layer (instance.h)
  ASSERT_GT(one.stages.at(0).forward_s + last_s, layer_s);
  EXPECT_NEAR(waits.stages.at(0).backward_s, last_s + 5 * layer_s, 1e-9);
}

TEST(NativeModel, ShardedParametersAreGatheredForEveryPassAndNotAfterTheStep) {
  Instance in = two_types();
  in.set_network(0, 1e9);
  FrameworkStyle style;
  style.sums = FrameworkStyle::Sums::rings;
  style.gradient_sync = FrameworkStyle::Sync::after_backward;
  style.sync_whole_layers = true;
  Plan plan = test::make_plan(in, 1, {{{0, 6, "fast", 1}}, {{0, 6, "fast", 1}}});
  plan.zero = Zero::gradients;
  const Prediction gradients = with_style(in, style, plan);
  style.zero = Zero::parameters;
  const Prediction parameters = with_style(in, style, plan);
  const double pass_s = 6 * 4e6 / 2 / 1e9;
  EXPECT_NEAR(parameters.stages.at(0).forward_s - gradients.stages.at(0).forward_s, pass_s, 1e-9);
  EXPECT_NEAR(parameters.stages.at(0).backward_s - gradients.stages.at(0).backward_s, pass_s, 1e-9);
  EXPECT_NEAR(gradients.update_s - parameters.update_s, pass_s, 1e-9);
  EXPECT_LT(parameters.stages.at(0).memory.weights_bytes, gradients.stages.at(0).memory.weights_bytes);
}

// The trainer refuses them: their ranks would wait for each other.
TEST(NativeModel, ShardedParametersOfUnlikeCutsArePredictedAllTheSame) {
  Instance in = two_types();
  in.set_network(0, 1e9);
  Plan plan = test::make_plan(
      in, 1, {{{0, 3, "fast", 1}, {3, 6, "fast", 1}}, {{0, 4, "slow", 1}, {4, 6, "slow", 1}}});
  plan.zero = Zero::parameters;
  EXPECT_FALSE(check_plan(plan, in.job).empty());
  const Prediction p = with_style(in, own_framework(Ranks::gpus), plan);
  EXPECT_GT(p.iteration_s, with_style(in, own_framework(Ranks::gpus),
                                      [&] {
                                        plan.zero = Zero::none;
                                        return plan;
                                      }())
                               .pipeline_s);
}

TEST(NativeModel, OnlyPlansOverSeveralNodesHaveJitter) {
  Instance in = two_types();
  in.profiles.layers["fast"].overheads.jitter = 0.1;
  Plan plan = test::make_plan(in, 1, {{{0, 3, "fast", 1}, {3, 6, "fast", 1}}});
  for (PlanStage& stage : plan.pipelines[0].stages) stage.node = "f";
  const double on_one_node = simulate(in.context(), plan).stages[0].forward_s;
  EXPECT_NEAR(on_one_node, 0.02 / 3 * 2.2, 1e-12);
  plan.pipelines[0].stages[1].node = "g";
  EXPECT_NEAR(simulate(in.context(), plan).stages[0].forward_s, 1.1 * on_one_node, 1e-12);
}

TEST(NativeModel, MessagesShareTheNetworkCardsOfTheirNode) {
  Instance in = two_types();
  in.profiles.network = {};
  in.profiles.network.add(
      {{"", "", 0}, {"", "", 0}, NetworkProfile::Scope::any, LinkCurve::from_rates(0, 1e9, 2e9)});
  // Four pipelines from node f to node g, a message of 400 kB each at once.
  Plan plan = test::make_plan(
      in, 1, std::vector<std::vector<test::StageSpec>>(4, {{0, 3, "fast", 1}, {3, 6, "fast", 1}}));
  for (PlanPipeline& pipeline : plan.pipelines) {
    pipeline.stages[0].node = "f";
    pipeline.stages[1].node = "g";
  }
  const Prediction p = simulate(in.context(), plan);
  EXPECT_NEAR(p.stages[0].send_forward_s, 4e5 / (2e9 / 4), 1e-12);
  EXPECT_NEAR(p.stages[1].send_backward_s, 4e5 / (2e9 / 4), 1e-12);
  // Two of them end on another node: their gradients have its cards.
  for (size_t j : {2u, 3u}) plan.pipelines[j].stages[1].node = "h";
  EXPECT_NEAR(simulate(in.context(), plan).stages[0].send_forward_s, 4e5 / (2e9 / 4), 1e-12);
  EXPECT_NEAR(simulate(in.context(), plan).stages[1].send_backward_s, 4e5 / 1e9, 1e-12);
  in.profiles.layers["fast"].overheads.message_slowdown = 1.5;
  EXPECT_NEAR(simulate(in.context(), plan).stages[1].send_backward_s, 1.5 * 4e5 / 1e9, 1e-12);
}

TEST(NativeModel, TheStyleSaysWhetherMessagesAreSplitOverTheTpGroup) {
  Instance in = two_types();
  in.profiles.network = {};
  in.profiles.network.add(
      {{"", "", 0}, {"", "", 0}, NetworkProfile::Scope::any, LinkCurve::from_rates(0, 1e9, 0)});
  const Plan plan = test::make_plan(in, 1, {{{0, 3, "fast", 2}, {3, 6, "fast", 2}}});
  FrameworkStyle style;
  EXPECT_NEAR(with_style(in, style, plan).stages[0].send_forward_s, 2e5 / 1e9, 1e-12);
  style.partitioned_messages = false;
  EXPECT_NEAR(with_style(in, style, plan).stages[0].send_forward_s, 4e5 / 1e9, 1e-12);
}

TEST(NativeModel, SmallMessagesAreSentWholeToEveryReceiver) {
  Instance in = two_types();
  in.profiles.network = {};
  in.profiles.network.add(
      {{"", "", 0}, {"", "", 0}, NetworkProfile::Scope::any, LinkCurve::from_rates(0, 1e9, 0)});
  FrameworkStyle style;
  style.forward_gathers = 1;
  style.backward_gathers = 1;
  const auto stages = [&](int lower, int upper) {
    const Plan plan = test::make_plan(in, 1, {{{0, 3, "fast", lower}, {3, 6, "fast", upper}}});
    return with_style(in, style, plan).stages;
  };
  const double message_s = 4e5 / 1e9;
  style.whole_message_bytes = 400'000;  // this one is not smaller
  const auto split = stages(1, 2), both_split = stages(2, 2);
  EXPECT_NEAR(split[0].send_forward_s, message_s, 1e-12);
  EXPECT_NEAR(both_split[0].send_forward_s, message_s / 2, 1e-12);
  style.whole_message_bytes = 400'001;
  const auto whole = stages(1, 2), both_whole = stages(2, 2);
  EXPECT_NEAR(whole[0].send_forward_s, 2 * message_s, 1e-12);
  EXPECT_NEAR(whole[1].send_backward_s, message_s, 1e-12);
  EXPECT_NEAR(both_whole[0].send_forward_s, message_s, 1e-12);
  EXPECT_LT(whole[1].forward_s, split[1].forward_s);  // nothing is gathered
  EXPECT_LT(both_whole[0].backward_s, both_split[0].backward_s);
}

TEST(NativeModel, AStageGathersWhatItReceivedAndReturns) {
  Instance in = two_types();
  in.profiles.network = {};
  const auto add = [&](NetworkProfile::Scope scope, double bytes_per_s) {
    in.profiles.network.add({{"", "", 0}, {"", "", 0}, scope, LinkCurve::from_rates(1e-6, bytes_per_s, 0)});
  };
  add(NetworkProfile::Scope::intra_node, 10e9);
  add(NetworkProfile::Scope::inter_node, 1e9);
  const Plan plan = test::make_plan(in, 1, {{{0, 2, "fast", 2}, {2, 4, "fast", 2}, {4, 6, "fast", 2}}});
  FrameworkStyle style;
  const Prediction without = with_style(in, style, plan);
  style.forward_gathers = 1;
  style.backward_gathers = 2;
  const Prediction with = with_style(in, style, plan);
  const double gather_s = 1e-6 + 2e5 / 10e9;  // half of a message of 400 kB
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_NEAR(with.stages[i].forward_s - without.stages[i].forward_s, i > 0 ? gather_s : 0, 1e-12);
    EXPECT_NEAR(with.stages[i].backward_s - without.stages[i].backward_s, i < 2 ? 2 * gather_s : 0, 1e-12);
    EXPECT_EQ(with.stages[i].send_forward_s, without.stages[i].send_forward_s);
  }
  EXPECT_GT(with.iteration_s, without.iteration_s);
}

TEST(NativeModel, OnlyWhatAFrameworkGathersNeedsALinkInsideANode) {
  Instance in = two_types();
  in.profiles.network = {};
  in.profiles.network.add(
      {{"", "", 0}, {"", "", 0}, NetworkProfile::Scope::inter_node, LinkCurve::from_rates(0, 1e9, 0)});
  Plan plan = test::make_plan(in, 1, {{{0, 3, "fast", 2}, {3, 6, "fast", 2}}});
  plan.pipelines[0].stages[0].node = "f";
  plan.pipelines[0].stages[1].node = "g";
  FrameworkStyle style;
  EXPECT_GT(with_style(in, style, plan).iteration_s, 0);
  style.forward_gathers = 1;
  EXPECT_THROW(with_style(in, style, plan), InputError);
}

TEST(NativeModel, OnlyPlansOverSeveralNodesSynchronizeNodes) {
  Instance in = two_types();
  in.profiles.layers["fast"].overheads.iteration_overhead_s = 0.5;
  in.profiles.layers["fast"].overheads.node_sync_s = 0.25;
  Plan plan = test::make_plan(in, 1, {{{0, 3, "fast", 1}, {3, 6, "fast", 1}}});
  for (PlanStage& stage : plan.pipelines[0].stages) stage.node = "f";
  EXPECT_DOUBLE_EQ(simulate(in.context(), plan).overhead_s, 0.5);
  plan.pipelines[0].stages[1].node = "g";
  EXPECT_DOUBLE_EQ(simulate(in.context(), plan).overhead_s, 0.75);
}

TEST(NativeModel, EveryMessageStarts) {
  Instance in = two_types();
  const Plan plan = test::make_plan(in, 1, {{{0, 3, "fast", 1}, {3, 6, "fast", 1}}});
  const Prediction before = simulate(in.context(), plan);
  in.profiles.layers["fast"].overheads.message_start_s = 0.01;
  in.profiles.layers["fast"].overheads.message_slowdown = 2;
  const Prediction after = simulate(in.context(), plan);
  EXPECT_NEAR(after.stages[0].send_forward_s, 0.01 + 2 * before.stages[0].send_forward_s, 1e-12);
  EXPECT_NEAR(after.stages[1].send_backward_s, 0.01 + 2 * before.stages[1].send_backward_s, 1e-12);
}

TEST(NativeModel, BufferedMessagesDoNotBlock) {
  Instance in = two_types();
  in.set_network(0, 1e7);
  const Plan plan = test::make_plan(in, 1, {{{0, 2, "fast", 2}, {2, 4, "fast", 2}, {4, 6, "fast", 2}}});
  const auto with = [&](FrameworkStyle::Sends sends, int64_t buffered) {
    FrameworkStyle style;
    style.sends = sends;
    style.buffered_message_bytes = buffered;
    return with_style(in, style, plan).iteration_s;
  };
  using enum FrameworkStyle::Sends;
  const int64_t share = 200'000;  // of two ranks in a message of 400 kB
  EXPECT_EQ(with(blocking, share), with(asynchronous, 0));
  EXPECT_EQ(with(blocking_in_turn, share), with(asynchronous_in_turn, 0));
  EXPECT_EQ(with(blocking_in_turn, share - 1), with(blocking_in_turn, 0));
  EXPECT_GT(with(blocking_in_turn, 0), with(asynchronous_in_turn, 0));
}

TEST(NativeModel, TheScheduleIsTheStyles) {
  FrameworkStyle style;
  style.forwards_first_single_group = true;
  const std::pair<FrameworkStyle::Sends, P2p> both[] = {
      {FrameworkStyle::Sends::asynchronous, P2p::asynchronous},
      {FrameworkStyle::Sends::asynchronous_in_turn, P2p::asynchronous_in_turn},
      {FrameworkStyle::Sends::blocking, P2p::blocking},
      {FrameworkStyle::Sends::blocking_in_turn, P2p::blocking_in_turn}};
  for (const auto& [sends, p2p] : both) {
    style.sends = sends;
    EXPECT_EQ(native::schedule_of(style, 3, 1).p2p, p2p);
    EXPECT_EQ(native::schedule_of(style, 3, 1).chunks, 3);
    EXPECT_TRUE(native::schedule_of(style, 3, 1).single_group_forwards_first);
  }
}

// It takes part in the rounds of the others while it has no microbatch of its own.
TEST(NativeModel, APipelineWithFewMicrobatchesTakesNoLongerThanWithMany) {
  test::Instance in = test::empty_instance(4, 8);
  in.add_type("a", 0.001, int64_t{1} << 40, 1);
  in.set_network(0, 1e8);  // sums and gathers take longer than the computation
  for (const Zero zero : {Zero::gradients, Zero::parameters}) {
    Plan plan = test::make_plan(in, 1, {{{0, 3, "a", 1}, {3, 6, "a", 1}}, {{0, 3, "a", 1}, {3, 6, "a", 1}}});
    plan.zero = zero;
    double last_s = 0;
    for (const int few : {1, 2, 3, 4}) {
      plan.pipelines[0].microbatches = 4;
      plan.pipelines[1].microbatches = few;
      const double iteration_s = simulate(in.context(), plan, CostModel::native).iteration_s;
      EXPECT_GE(iteration_s, last_s) << to_string(zero) << ", " << few;
      last_s = iteration_s;
    }
  }
}

}  // namespace
}  // namespace sailor
