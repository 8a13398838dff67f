#include "planner/report/megatron_flags.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "planner/search/search.h"
#include "planner/spec/model_family.h"
#include "tests/unit/planner/instance.h"

namespace sailor {
namespace {

test::Instance eight_blocks(int blocks = 8) {
  test::Instance in = test::empty_instance(blocks, 16);
  in.add_type("fast", 0.01, 4'000'000'000, 4);
  in.add_type("slow", 0.03, 4'000'000'000, 1);
  return in;
}

bool has(const MegatronFlags& megatron, const std::string& flag) {
  return std::find(megatron.flags.begin(), megatron.flags.end(), flag) != megatron.flags.end();
}

bool names(const MegatronFlags& megatron, const std::string& name) {
  return std::any_of(megatron.flags.begin(), megatron.flags.end(),
                     [&](const std::string& flag) { return flag.starts_with(name); });
}

MegatronFlags flags_of(const std::vector<std::vector<test::StageSpec>>& pipelines, int blocks = 8) {
  const test::Instance in = eight_blocks(blocks);
  return megatron_flags(in.job, test::make_plan(in, 1, pipelines));
}

TEST(MegatronFlags, EvenPlansNeedNoCut) {
  const MegatronFlags m =
      flags_of({{{0, 5, "fast", 2}, {5, 10, "fast", 2}}, {{0, 5, "fast", 2}, {5, 10, "fast", 2}}});
  EXPECT_EQ(m.why_not, "");
  for (const char* flag : {"--tensor-model-parallel-size 2", "--pipeline-model-parallel-size 2",
                           "--micro-batch-size 1", "--global-batch-size 16", "--num-layers 8"})
    EXPECT_TRUE(has(m, flag)) << flag;
  EXPECT_FALSE(names(m, "--decoder-")) << "4 blocks each";
  EXPECT_FALSE(names(m, "--pipeline-model-parallel-layout"));
  EXPECT_FALSE(names(m, "--use-distributed-optimizer"));
}

TEST(MegatronFlags, UnevenEndsAreNamed) {
  const MegatronFlags two = flags_of({{{0, 6, "fast", 1}, {6, 10, "fast", 1}}});
  EXPECT_TRUE(has(two, "--decoder-first-pipeline-num-layers 5"));
  EXPECT_FALSE(names(two, "--decoder-last"));
  const MegatronFlags last =
      flags_of({{{0, 4, "fast", 1}, {4, 7, "fast", 1}, {7, 10, "fast", 1}}});  // 3, 3, 2 blocks
  EXPECT_FALSE(names(last, "--decoder-first"));
  EXPECT_TRUE(has(last, "--decoder-last-pipeline-num-layers 2"));
}

TEST(MegatronFlags, AnyOtherCutIsALayout) {
  const MegatronFlags middle = flags_of(
      {{{0, 3, "fast", 1}, {3, 4, "fast", 1}, {4, 7, "fast", 1}, {7, 10, "fast", 1}}});  // 2, 1, 3, 2
  EXPECT_TRUE(has(middle, "--pipeline-model-parallel-layout Ett|t|ttt|ttL"));
  const MegatronFlags alone = flags_of({{{0, 1, "fast", 1}, {1, 10, "fast", 1}}});
  EXPECT_TRUE(has(alone, "--pipeline-model-parallel-layout E|ttttttttL"));
  EXPECT_FALSE(names(alone, "--decoder-"));
}

TEST(MegatronFlags, InterleavingRecomputationAndZero) {
  const test::Instance in = eight_blocks();
  Plan plan =
      test::make_plan(in, 1, {{{0, 3, "fast", 1}, {3, 5, "fast", 1}, {5, 7, "fast", 1}, {7, 10, "fast", 1}}});
  plan.interleave = 2;
  plan.zero = Zero::optimizer;
  plan.sequence_parallel = true;
  for (PlanStage& stage : plan.pipelines[0].stages) stage.recompute = Recompute::full;
  EXPECT_FALSE(has(megatron_flags(in.job, plan), "--sequence-parallel"));  // of single GPUs
  for (PlanStage& stage : plan.pipelines[0].stages) stage.shape.tp = 2;
  const MegatronFlags m = megatron_flags(in.job, plan);
  for (const char* flag : {"--pipeline-model-parallel-size 2", "--num-layers-per-virtual-pipeline-stage 2",
                           "--use-distributed-optimizer", "--sequence-parallel",
                           "--recompute-granularity full", "--recompute-method uniform"})
    EXPECT_TRUE(has(m, flag)) << flag;
}

TEST(MegatronFlags, GroupsThatShareStatesAreInstancesOfTheOptimizer) {
  const test::Instance in = eight_blocks();
  Plan plan = test::make_plan(in, 1, std::vector(4, std::vector<test::StageSpec>{{0, 10, "fast", 1}}));
  plan.zero = Zero::optimizer;
  EXPECT_FALSE(names(megatron_flags(in.job, plan), "--num-distributed-optimizer-instances"));
  plan.zero_group = 2;
  EXPECT_TRUE(has(megatron_flags(in.job, plan), "--num-distributed-optimizer-instances 2"));
}

TEST(MegatronFlags, ContextParallelismAndRecomputationOfTheFirstBlocks) {
  const test::Instance in = eight_blocks();
  Plan plan = test::make_plan(in, 1, {{{0, 5, "fast", 2}, {5, 10, "fast", 2}}});
  for (PlanStage& stage : plan.pipelines[0].stages) {
    stage.shape.cp = 2;
    stage.recompute = StageRecompute(Recompute::full, 3, Recompute::none);
  }
  const MegatronFlags m = megatron_flags(in.job, plan);
  for (const char* flag : {"--context-parallel-size 2", "--cp-comm-type a2a", "--recompute-granularity full",
                           "--recompute-method block", "--recompute-num-layers 3"})
    EXPECT_TRUE(has(m, flag)) << flag << m.why_not;
  EXPECT_EQ(m.notes.front(),
            "start 8 ranks: tensor-parallel 2 x context-parallel 2 x data-parallel 1 x pipeline-parallel 2");
  plan.pipelines[0].stages[1].shape.cp = 1;
  EXPECT_EQ(megatron_flags(in.job, plan).why_not, "its stages have different context-parallel degrees");
}

TEST(MegatronFlags, Fp16HasTheLossScaleOfTheJob) {
  test::Instance in = eight_blocks();
  in.job.training.precision = Precision::fp16;
  in.job.training.loss_scale = {.initial = 4096, .window = 500, .hysteresis = 3, .minimum = 2};
  const MegatronFlags m = megatron_flags(in.job, test::make_plan(in, 1, {{{0, 10, "fast", 1}}}));
  for (const char* flag : {"--fp16", "--initial-loss-scale 4096", "--min-loss-scale 2",
                           "--loss-scale-window 500", "--hysteresis 3"})
    EXPECT_TRUE(has(m, flag)) << flag;
}

TEST(MegatronFlags, SaysWhyItCannotRunAPlan) {
  const auto why = [](const std::vector<std::vector<test::StageSpec>>& pipelines) {
    const MegatronFlags m = flags_of(pipelines);
    EXPECT_TRUE(m.flags.empty());
    return m.why_not;
  };
  EXPECT_EQ(why({{{0, 5, "fast", 2}, {5, 10, "fast", 1}}}),
            "its stages have different tensor-parallel degrees");
  EXPECT_EQ(why({{{0, 10, "fast", 1}}, {{0, 5, "fast", 1}, {5, 10, "fast", 1}}}),
            "its pipelines have different numbers of stages");
  EXPECT_EQ(why({{{0, 10, "fast", 1}}, {{0, 10, "fast", 1}}, {{0, 10, "fast", 1}}}),
            "its pipelines take different numbers of microbatches");
  const test::Instance in = eight_blocks();
  Plan plan = test::make_plan(in, 1, {{{0, 10, "fast", 1}}, {{0, 10, "fast", 1}}});
  plan.pipelines[1].microbatch = 3;
  EXPECT_EQ(megatron_flags(in.job, plan).why_not, "its pipelines have microbatches of different sizes");
  EXPECT_EQ(why({{{0, 5, "fast", 1}, {5, 10, "fast", 1}}, {{0, 4, "fast", 1}, {4, 10, "fast", 1}}}),
            "its pipelines cut the layers differently");
}

TEST(MegatronFlags, MixedStagesNeedAnOrderOfNodes) {
  const test::Instance in = eight_blocks();
  Plan plan = test::make_plan(
      in, 1, {{{0, 5, "fast", 1}, {5, 10, "slow", 1}}, {{0, 5, "fast", 1}, {5, 10, "slow", 1}}});
  plan.pipelines[0].stages[0].node = plan.pipelines[1].stages[0].node = "f0";
  plan.pipelines[0].stages[1].node = plan.pipelines[1].stages[1].node = "s0";
  const MegatronFlags m = megatron_flags(in.job, plan);
  EXPECT_EQ(m.why_not, "");
  EXPECT_TRUE(m.notes.back().ends_with("in this order: f0 s0")) << m.notes.back();
  // Where an order of nodes is not enough, ranks have to be started one by one.
  plan.pipelines[1].stages[1].node = "f0";
  plan.pipelines[1].stages[0].node = "s0";
  EXPECT_TRUE(
      megatron_flags(in.job, plan).notes.back().starts_with("the order of ranks comes back to node f0"));
  plan = test::make_plan(in, 1, {{{0, 10, "fast", 1}}, {{0, 10, "slow", 1}}});
  EXPECT_TRUE(megatron_flags(in.job, plan)
                  .notes.back()
                  .starts_with("replicas of one stage are on different GPU types"));
}

TEST(MegatronFlags, FamiliesSayWhatIsTheirOwn) {
  test::Instance in = eight_blocks();
  const Plan plan = test::make_plan(in, 1, {{{0, 10, "fast", 1}}});
  set_family(in.job.model, "llama");
  in.job.model.rotary_base = 5000;
  const MegatronFlags rotary = megatron_flags(in.job, plan);
  EXPECT_TRUE(has(rotary, "--position-embedding-type rope"));
  EXPECT_TRUE(has(rotary, "--rotary-base 5000"));
  EXPECT_TRUE(has(rotary, "--swiglu"));
  set_family(in.job.model, "gpt-neo");
  const MegatronFlags unscaled = megatron_flags(in.job, plan);
  EXPECT_EQ(unscaled.why_not, "its model does not scale attention scores");
  EXPECT_TRUE(unscaled.flags.empty());
  set_family(in.job.model, "gpt-neox");
  in.job.model.parallel_residual = false;
  in.job.model.rotary_fraction = 0.25;
  EXPECT_TRUE(has(megatron_flags(in.job, plan), "--rotary-percent 0.25"));
  in.job.model.parallel_residual = true;
  EXPECT_EQ(megatron_flags(in.job, plan).why_not, "its model adds attention and MLP of a block side by side");
}

}  // namespace
}  // namespace sailor
