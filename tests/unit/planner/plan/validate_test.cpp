// check_plan and place.
#include "planner/plan/validate.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <random>
#include <set>

#include "planner/plan/place.h"
#include "planner/plan/plan_json.h"

namespace sailor {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

PlanStage valid_stage(int first, int end, const std::string& type, int tp) {
  PlanStage s;
  s.first_layer = first;
  s.end_layer = end;
  s.gpu_type = type;
  s.zone = "z1";
  s.shape.tp = tp;
  return s;
}

JobSpec valid_job() {
  JobSpec spec;
  spec.model = {.name = "m",
                .family = "f",
                .layers = 4,
                .hidden = 64,
                .heads = 4,
                .feed_forward = 256,
                .sequence = 8,
                .vocabulary = 16};
  spec.training.global_batch = 10;
  return spec;
}

Plan valid_plan() {
  Plan p;
  p.model = "m";
  p.global_batch = 10;
  p.microbatch = 4;
  p.pipelines = {{2, {valid_stage(0, 4, "big", 4), valid_stage(4, 6, "small", 1)}},
                 {1, {valid_stage(0, 6, "big", 2)}}};
  return p;
}

SnapshotNode node(const std::string& name, const std::string& type, std::vector<int> free, int gpus = 4) {
  return {name, "", "z1", "z1", type, gpus, std::move(free), ""};
}

Snapshot cluster() {
  Snapshot s;
  s.nodes = {node("b2", "big", {0, 1, 2, 3}), node("b1", "big", {1, 2, 3}), node("s1", "small", {0})};
  return s;
}

TEST(CheckPlan, HoldsTheLimitsOfTheCluster) {
  Snapshot limited = cluster();
  ASSERT_THAT(check_plan(valid_plan(), limited), IsEmpty());
  limited.limits = {{7, "", "all"}, {6, "big", "some"}};
  EXPECT_THAT(check_plan(valid_plan(), limited), IsEmpty());
  limited.limits = {{6, "", "all"}, {5, "big", "some"}};
  EXPECT_THAT(check_plan(valid_plan(), limited),
              ElementsAre("7 GPUs are needed: all", "6 GPUs of type big are needed: some"));
}

TEST(CheckPlan, AGoodPlanHasNoViolations) {
  EXPECT_THAT(check_plan(valid_plan(), valid_job()), IsEmpty());
  EXPECT_THAT(check_plan(valid_plan(), cluster()), IsEmpty());
}

TEST(CheckPlan, MicrobatchesOfUnlikeSizesHaveTheSequencesOfTheBatch) {
  Plan p = valid_plan();
  p.pipelines[1].microbatch = 2;  // 4 + 4 + 2
  EXPECT_THAT(check_plan(p, valid_job()), IsEmpty());
  EXPECT_THAT(check_plan(p, valid_job(), PlanFeatures{PlanFeature::unlike_cuts}),
              ElementsAre("unlike microbatches are not supported by this version's trainer"));
  p.pipelines[1].microbatch = 3;  // the very last has 2 of 3
  EXPECT_THAT(check_plan(p, valid_job()), IsEmpty());
  for (const int wrong : {1, 0}) {  // too few; none
    p.pipelines[1].microbatch = wrong;
    EXPECT_THAT(check_plan(p, valid_job()),
                ElementsAre(wrong == 0 ? "microbatch 0 must be at least 1"
                                       : "the microbatches have 9 sequences, the global batch has 10: only "
                                         "the very last one, of 1, may be smaller"));
  }
  p = valid_plan();
  p.pipelines[0].microbatch = 5;  // nothing is left for the last one
  EXPECT_THAT(check_plan(p, valid_job()),
              ElementsAre("the microbatches have 14 sequences, the global batch has 10: only the very last "
                          "one, of 4, may be smaller"));
  for (PlanPipeline& pipeline : p.pipelines) pipeline.microbatch = 5;
  EXPECT_THAT(check_plan(p, valid_job()),
              ElementsAre("3 microbatches of 5 do not match the global batch of 10, which needs 2"));
}

TEST(CheckPlan, NamesWhatDoesNotFitTheJob) {
  Plan p = valid_plan();
  p.pipelines[0].stages[1].first_layer = 5;
  EXPECT_THAT(check_plan(p, valid_job()),
              ElementsAre("pipeline 0, stage 1: begins at layer 5, layer 4 is next"));
  p = valid_plan();
  p.pipelines[1].stages[0].end_layer = 5;
  EXPECT_THAT(check_plan(p, valid_job()),
              ElementsAre("pipeline 1, stage 0: ends at layer 5, the model has 6 layers"));
  p = valid_plan();
  p.pipelines[1].stages[0].shape.tp = 3;
  EXPECT_THAT(check_plan(p, valid_job()),
              ElementsAre(HasSubstr("tp 3 does not divide the model's 4 heads"),
                          HasSubstr("tp 3 does not divide the model's feed_forward 256")));
  p = valid_plan();
  p.pipelines[1].microbatches = 2;
  EXPECT_THAT(check_plan(p, valid_job()),
              ElementsAre("4 microbatches of 4 do not match the global batch of 10, which needs 3"));
  p = valid_plan();
  p.pipelines[1].stages[0].recompute = Recompute::full;
  EXPECT_THAT(check_plan(p, valid_job(), all_plan_features()), IsEmpty());
  EXPECT_THAT(check_plan(p, valid_job(), {}),
              ElementsAre(HasSubstr("pipeline 1, stage 0: recompute \"full\" is not supported")));
  p.pipelines[1].stages[0].recompute = Recompute::selective;
  EXPECT_THAT(check_plan(p, valid_job(), predictable_features()), IsEmpty());
  EXPECT_THAT(check_plan(p, valid_job()),
              ElementsAre(HasSubstr("pipeline 1, stage 0: recompute \"selective\" is not supported")));
  p = valid_plan();
  PlanStage& stage = p.pipelines[1].stages[0];
  const int blocks = std::min(stage.end_layer, valid_job().model.num_all_layers() - 1) - 1;
  stage.recompute = {Recompute::full, blocks, Recompute::light};
  EXPECT_THAT(check_plan(p, valid_job()), IsEmpty());
  stage.recompute = {Recompute::full, blocks + 1, Recompute::light};
  EXPECT_THAT(check_plan(p, valid_job()),
              ElementsAre(HasSubstr(fmt::format("recomputes {} blocks of {}", blocks + 1, blocks))));
  p = valid_plan();
  p.pipelines[0].stages[0].weight_delay = 0;
  p.pipelines[0].stages[1].weight_delay = 1;
  EXPECT_THAT(check_plan(p, valid_job()), IsEmpty());
  EXPECT_THAT(check_plan(p, valid_job(), {}),
              ElementsAre(HasSubstr("pipeline 0, stage 0: weight_delay 0 is not supported"),
                          HasSubstr("pipeline 0, stage 1: weight_delay 1 is not supported")));
  p.pipelines[0].stages[0].weight_delay = kWholeBackward;
  p.zero = Zero::gradients;
  EXPECT_THAT(
      check_plan(p, valid_job()),
      ElementsAre(HasSubstr("stage 1: weight_delay 1 does not go with zero2, which sums the gradients "
                            "of every microbatch: use zero \"optimizer\"")));
  p.zero = Zero::optimizer;
  p.pipelines[0].stages[1].weight_delay = 2;
  EXPECT_THAT(check_plan(p, valid_job()),
              ElementsAre(HasSubstr("weight_delay 2 is above the stage's number, 1")));
  p = valid_plan();
  p.pipelines[0].stages[1].offload = Offload::optimizer;
  EXPECT_THAT(check_plan(p, valid_job()), IsEmpty());
  EXPECT_THAT(check_plan(p, valid_job(), {}),
              ElementsAre(HasSubstr("pipeline 0, stage 1: offload \"optimizer\" is not supported")));
  p = valid_plan();
  p.sequence_parallel = true;
  EXPECT_THAT(check_plan(p, valid_job()), IsEmpty());
  PlanFeatures others = all_plan_features();
  others.erase(PlanFeature::sequence_parallel);
  EXPECT_THAT(check_plan(p, valid_job(), others),
              ElementsAre(HasSubstr("sequence_parallel is not supported")));
  p = valid_plan();
  PlanStage& split = p.pipelines[0].stages[0];
  split.shape = {.tp = 1, .cp = 2};
  split.node.clear();
  split.gpus.clear();
  EXPECT_THAT(check_plan(p, valid_job()),
              ElementsAre(HasSubstr("pipeline 0, stage 0: cp 2 splits the tokens: set "
                                    "\"sequence_parallel\": true")));
  p.sequence_parallel = true;
  EXPECT_THAT(check_plan(p, valid_job()), IsEmpty());
  others = all_plan_features();
  others.erase(PlanFeature::context_parallel);
  EXPECT_THAT(check_plan(p, valid_job(), others), ElementsAre(HasSubstr("cp 2 is not supported")));
  split.shape.cp = 5;  // does not divide the heads: a ring
  EXPECT_THAT(check_plan(p, valid_job()), IsEmpty());
  split.shape.cp = 0;
  EXPECT_THAT(check_plan(p, valid_job()), Contains(HasSubstr("cp 0 is not a valid")));
  p = valid_plan();
  p.zero = Zero::optimizer;
  EXPECT_THAT(check_plan(p, valid_job(), all_plan_features()), IsEmpty());
  EXPECT_THAT(check_plan(p, valid_job(), {}),
              ElementsAre(HasSubstr("zero1: optimizer sharding is not supported")));
  p.zero = Zero::gradients;
  EXPECT_THAT(check_plan(p, valid_job()), IsEmpty());
  EXPECT_THAT(check_plan(p, valid_job(), {}),
              ElementsAre(HasSubstr("zero2: gradients sharding is not supported")));
  EXPECT_THAT(check_plan(p, valid_job(), {PlanFeature::zero1}),
              ElementsAre(HasSubstr("zero2: gradients sharding is not supported")));
  p = valid_plan();
  p.global_batch = 11;
  EXPECT_THAT(check_plan(p, valid_job()), ElementsAre("global batch 11 is not the job's 10"));
}

TEST(CheckPlan, GradientsAreShardedWithChunksThatAreCutAlike) {
  Plan p = valid_plan();
  p.microbatch = 1;
  p.interleave = 2;
  const auto chunks = [](int cut) {
    return std::vector{valid_stage(0, 1, "big", 1), valid_stage(1, cut, "small", 2),
                       valid_stage(cut, 5, "big", 1), valid_stage(5, 6, "small", 2)};
  };
  p.pipelines = {{4, chunks(3)}, {6, chunks(2)}};
  for (const Zero zero : {Zero::optimizer, Zero::gradients}) {
    p.zero = zero;
    const auto violations = check_plan(p, valid_job());
    if (zero == Zero::optimizer) {
      EXPECT_THAT(violations, IsEmpty());
    } else {
      EXPECT_THAT(
          violations,
          ElementsAre("zero2 with interleaved chunks needs the same stages in all pipelines, "
                      "which exchange gradients layer by layer in one order: cut the layers alike, or use "
                      "zero \"optimizer\""));
    }
  }
  p.pipelines[1].stages = chunks(3);
  EXPECT_THAT(check_plan(p, valid_job()), IsEmpty());
}

TEST(CheckPlan, ParametersAreShardedBetweenPipelinesThatAreCutAlike) {
  Plan p = valid_plan();
  p.microbatch = 1;
  p.zero = Zero::parameters;
  const auto stages = [](int cut) {
    return std::vector{valid_stage(0, cut, "big", 1), valid_stage(cut, 6, "small", 2)};
  };
  p.pipelines = {{4, stages(3)}, {6, stages(3)}};
  JobSpec job = valid_job();
  EXPECT_THAT(check_plan(p, job), IsEmpty());
  EXPECT_THAT(check_plan(p, job, {PlanFeature::zero1, PlanFeature::zero2}),
              ElementsAre(HasSubstr("zero3: parameters sharding is not supported")));
  p.pipelines[1].stages = stages(4);
  EXPECT_THAT(
      check_plan(p, job),
      ElementsAre("zero3 needs the same stages in all pipelines, which exchange weights and gradients "
                  "layer by layer in one order: cut the layers alike, or use zero \"gradients\""));
  p.pipelines[1].stages = stages(3);
  job.training.lora.emplace();
  EXPECT_THAT(check_plan(p, job), ElementsAre(HasSubstr("zero3 shards what is trained")));
}

TEST(Place, APipelineWithFewerStagesThanChunksIsNamed) {
  Plan p = valid_plan();
  p.interleave = 2;
  try {
    place(p, cluster());
    FAIL();
  } catch (const std::runtime_error& e) {
    EXPECT_THAT(e.what(), HasSubstr("pipeline 1: 1 stages cannot form 2 chunks"));
  }
}

TEST(CheckPlan, NamesWhatDoesNotFitTheCluster) {
  Plan p = valid_plan();
  p.pipelines.push_back(p.pipelines[1]);
  EXPECT_THAT(check_plan(p, cluster()), ElementsAre("8 GPUs of type big in zone z1 are needed, 7 are free"));
  p = valid_plan();
  place(p, cluster());
  EXPECT_THAT(check_plan(p, cluster()), IsEmpty());
  Plan twice = p;
  twice.pipelines[1].stages[0].node = "b2";
  twice.pipelines[1].stages[0].gpus = {0, 1};
  EXPECT_THAT(check_plan(twice, cluster()),
              ElementsAre("pipeline 1, stage 0: GPU 0 of node b2 is used twice",
                          "pipeline 1, stage 0: GPU 1 of node b2 is used twice"));
  EXPECT_EQ(check_placement(twice), check_plan(twice, cluster()));
  EXPECT_THAT(check_placement(p), IsEmpty());
  Plan beyond = p;
  beyond.pipelines[1].stages[0].gpus = {1, 4};
  EXPECT_THAT(check_plan(beyond, cluster()),
              ElementsAre("pipeline 1, stage 0: node b1 has 4 GPUs, numbered from 0: there is no GPU 4"));
  Plan taken = p;
  taken.pipelines[1].stages[0].gpus = {0, 1};
  EXPECT_THAT(check_plan(taken, cluster()), ElementsAre("pipeline 1, stage 0: GPU 0 of node b1 is not free"));
  Plan gone = p;
  gone.pipelines[0].stages[1].node = "s9";
  EXPECT_THAT(check_plan(gone, cluster()),
              ElementsAre("pipeline 0, stage 1: the cluster has no free node s9"));
}

TEST(CheckPlan, GroupsThatShareStatesDivideThePipelinesAndHoldEveryLayerAlike) {
  Plan p = valid_plan();
  const JobSpec job = valid_job();
  const PlanPipeline first = p.pipelines[0];
  p.pipelines = {first, first, first, first};
  p.global_batch = 4 * first.microbatches * p.microbatch;
  JobSpec larger = job;
  larger.training.global_batch = p.global_batch;
  p.zero_group = 2;
  EXPECT_THAT(check_plan(p, larger), ElementsAre("zero_group 2 has no meaning without ZeRO"));
  p.zero = Zero::optimizer;
  EXPECT_THAT(check_plan(p, larger), IsEmpty());
  EXPECT_THAT(check_plan(p, larger, {PlanFeature::zero1}),
              Contains(HasSubstr("zero_group 2 is not supported by this version's trainer")));
  p.zero_group = 3;
  EXPECT_THAT(check_plan(p, larger), ElementsAre("zero_group 3 does not divide 4 pipelines into groups"));
  p.zero_group = 1;
  EXPECT_THAT(
      check_plan(p, larger),
      ElementsAre("zero_group 1 leaves layer 0 to one rank of pipeline 0, which shares it with nobody"));
  EXPECT_FALSE(zero_groups_match(p, larger.model));
  // A matrix that the first and the last layer share is on one stage of a pipeline, or on two.
  larger.model.tied_embeddings = true;
  p.zero_group = 2;
  EXPECT_TRUE(zero_groups_match(p, larger.model));
  for (const size_t j : {2, 3}) p.pipelines[j].stages = {valid_stage(0, 6, "big", 2)};
  EXPECT_THAT(
      check_plan(p, larger),
      ElementsAre("zero_group 2 needs as many ranks for a layer in every group: the tied embedding has "
                  "4 in that of pipeline 0, 2 in that of pipeline 2"));
}

// Groups have rounds of their own.
TEST(CheckPlan, ShardedParametersNeedTheSameCutWithinAGroup) {
  Plan p = valid_plan();
  const PlanPipeline first = p.pipelines[0];
  PlanPipeline other = first;
  other.stages[0].end_layer = other.stages[1].first_layer = first.stages[0].end_layer - 1;
  p.pipelines = {first, first, other, other};
  p.zero = Zero::parameters;
  EXPECT_FALSE(can_sum_in_one_order(p));
  p.zero_group = 2;
  EXPECT_TRUE(can_sum_in_one_order(p));
  p.pipelines = {first, other, first, other};
  EXPECT_FALSE(can_sum_in_one_order(p));
}

TEST(CheckPlan, ATpGroupNeverCrossesNodesEvenWhenTheTotalFits) {
  Plan p = valid_plan();
  p.pipelines = {{3, {valid_stage(0, 6, "big", 4)}}};
  Snapshot s;
  s.nodes = {node("b1", "big", {0, 1}), node("b2", "big", {0, 1})};
  EXPECT_THAT(check_plan(p, s),
              ElementsAre("pipeline 0, stage 0: no node of type big in zone z1 has 4 free GPUs left"));
}

TEST(Place, BestFitAndIndependentOfTheOrderOfNodes) {
  Plan p = valid_plan();
  place(p, cluster());
  EXPECT_EQ(p.pipelines[0].stages[0].node, "b2");
  EXPECT_EQ(p.pipelines[1].stages[0].node, "b1");
  EXPECT_THAT(p.pipelines[1].stages[0].gpus, ElementsAre(1, 2));
  Snapshot reversed = cluster();
  std::reverse(reversed.nodes.begin(), reversed.nodes.end());
  Plan q = valid_plan();
  place(q, reversed);
  EXPECT_EQ(to_json(p), to_json(q));
}

TEST(Place, StagesThatHaveANodeKeepIt) {
  Plan p = valid_plan();
  p.pipelines[1].stages[0].node = "b1";
  p.pipelines[1].stages[0].gpus = {2, 3};
  place(p, cluster());
  EXPECT_THAT(p.pipelines[1].stages[0].gpus, ElementsAre(2, 3));
  EXPECT_THAT(check_plan(p, cluster()), IsEmpty());
}

TEST(Place, ThrowsAndChangesNothingWhenAStageFindsNoNode) {
  Plan p = valid_plan();
  p.pipelines[1].stages[0].shape.tp = 4;
  std::string before = to_json(p);
  EXPECT_THROW(place(p, cluster()), std::runtime_error);
  EXPECT_EQ(to_json(p), before);
}

TEST(Place, WithDegreesThatDivideOneAnotherEveryCountThatFitsIsPlaced) {
  std::mt19937 random(3);
  for (int round = 0; round < 300; ++round) {
    Snapshot s;
    std::vector<int> free;
    for (int n = 0; n < 4; ++n) {
      int count = static_cast<int>(random() % 9);
      std::vector<int> gpus;
      for (int g = 0; g < count; ++g) gpus.push_back(g);
      s.nodes.push_back(node("n" + std::to_string(n), "big", gpus, 8));
      free.push_back(count);
    }
    // Take groups until nothing fits, largest first, from any node: place() must find room for all of them.
    Plan p;
    for (int tp : {8, 4, 2, 1}) {
      for (int& count : free) {
        while (count >= tp && random() % 3 != 0) {
          count -= tp;
          p.pipelines.push_back({1, {valid_stage(0, 6, "big", tp)}});
        }
      }
    }
    std::shuffle(p.pipelines.begin(), p.pipelines.end(), random);
    if (p.pipelines.empty()) continue;
    ASSERT_NO_THROW(place(p, s));
    EXPECT_THAT(check_plan(p, s), IsEmpty());
  }
}

}  // namespace
}  // namespace sailor
