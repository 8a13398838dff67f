#include "planner/plan/plan.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <numeric>

#include "planner/plan/plan_json.h"
#include "planner/plan/rank_layout.h"
#include "planner/spec/error.h"
#include "planner/spec/text_file.h"
#include "tests/unit/planner/error_of.h"

namespace sailor {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

PlanStage stage_of(int first, int end, const std::string& type, int tp) {
  PlanStage s;
  s.first_layer = first;
  s.end_layer = end;
  s.gpu_type = type;
  s.zone = "z1";
  s.shape.tp = tp;
  return s;
}

// Two pipelines that cut six layers differently: 4,1 / 2.
Plan example_plan() {
  Plan plan;
  plan.model = "m";
  plan.global_batch = 10;
  plan.microbatch = 4;
  plan.pipelines = {{2, {stage_of(0, 4, "big", 4), stage_of(4, 6, "small", 1)}},
                    {1, {stage_of(0, 6, "big", 2)}}};
  plan.pipelines[0].stages[0].node = "a1";
  plan.pipelines[0].stages[0].gpus = {0, 1, 2, 5};
  plan.prediction = PlanPrediction{1.5, {}, 1.25, {}, 1 << 20};
  plan.prediction->spent[Expense::cost] = 0.25;
  return plan;
}

TEST(Plan, MicrobatchesAreSharedAsFloorOrCeilingLargerFirst) {
  EXPECT_THAT(share_microbatches(10, 4), ElementsAre(3, 3, 2, 2));
  EXPECT_THAT(share_microbatches(8, 4), ElementsAre(2, 2, 2, 2));
  EXPECT_THAT(share_microbatches(2, 4), ElementsAre(1, 1, 0, 0));
  EXPECT_EQ(num_microbatches(10, 4), 3);
  EXPECT_EQ(num_microbatches(12, 4), 3);
  EXPECT_THROW(share_microbatches(1, 0), std::invalid_argument);
}

// Pipelines of 1, 4 and 2 sequences at a time, 19 in all; the last microbatch has one of its two.
Plan unlike_plan() {
  Plan plan = example_plan();
  plan.global_batch = 19;
  plan.microbatch = 2;
  plan.pipelines = {{4, {stage_of(0, 6, "small", 1)}, 1},
                    {3, {stage_of(0, 6, "big", 2)}, 4},
                    {2, {stage_of(0, 6, "big", 1)}}};
  return plan;
}

TEST(Plan, UnlikeMicrobatchesAreSharedInTheProportionsThatThereAre) {
  Plan plan = unlike_plan();
  EXPECT_THAT(microbatch_sizes(plan), ElementsAre(1, 2, 4));
  EXPECT_EQ(sequences_of_microbatches(plan), 20);
  share_batch(plan);
  EXPECT_EQ(plan.pipelines[0].microbatches, 3);
  EXPECT_EQ(plan.pipelines[1].microbatches, 3);
  EXPECT_EQ(plan.pipelines[2].microbatches, 2);
  // Without the last one, and with other numbers of sequences.
  for (int64_t batch = 6; batch < 60; ++batch)
    for (const size_t pipelines : {3u, 2u}) {
      plan = unlike_plan();
      plan.global_batch = batch;
      plan.pipelines.resize(pipelines);
      share_batch(plan);
      const int64_t excess = sequences_of_microbatches(plan) - batch;
      EXPECT_GE(excess, 0) << batch;
      EXPECT_LT(excess, pipelines == 3 ? 2 : 4) << batch;
      if (batch < 20) continue;
      const double part = 12.0 * static_cast<double>(batch) / (pipelines == 3 ? 20 : 16);
      EXPECT_NEAR(4 * plan.pipelines[1].microbatches, part, 4) << batch;
    }
  plan = example_plan();
  plan.global_batch = 33;
  share_batch(plan);
  EXPECT_EQ(plan.pipelines[0].microbatches, 5);
  EXPECT_EQ(plan.pipelines[1].microbatches, 4);
}

TEST(Plan, SummaryIsOneLine) {
  EXPECT_EQ(summary(example_plan()), "2 pipelines: 4xbig tp4 | 1xsmall tp1; 2xbig tp2, 3 microbatches of 4");
  EXPECT_EQ(summary(unlike_plan()),
            "3 pipelines: 1xsmall tp1; 2xbig tp2; 1xbig tp1, 9 microbatches of 1 or 2 or 4");
}

TEST(PlanJson, WritingAndReadingGivesTheSame) {
  for (int indent : {2, -1}) {
    std::string json = to_json(example_plan(), indent);
    Plan plan = parse_plan(json, "p");
    EXPECT_EQ(to_json(plan, indent), json);
    EXPECT_THAT(plan.pipelines[0].stages[0].gpus, ElementsAre(0, 1, 2, 5));
    EXPECT_TRUE(plan.pipelines[1].stages[0].node.empty());
    EXPECT_DOUBLE_EQ(*plan.prediction->bound_iteration_s, 1.25);
    EXPECT_FALSE(plan.prediction->bound[Expense::cost]);
  }
}

TEST(PlanJson, APipelineMaySayTheSizeOfItsMicrobatches) {
  const std::string json = to_json(unlike_plan(), -1);
  EXPECT_THAT(json, HasSubstr(R"({"microbatches":4,"microbatch":1,"stages")"));
  const Plan plan = parse_plan(json, "p");
  EXPECT_EQ(to_json(plan, -1), json);
  EXPECT_EQ(microbatch_of(plan, plan.pipelines[1]), 4);
  EXPECT_EQ(microbatch_of(plan, plan.pipelines[2]), 2);
  EXPECT_FALSE(plan.pipelines[2].microbatch);
  // One that all have is the plan's.
  Plan alike = unlike_plan();
  for (PlanPipeline& pipeline : alike.pipelines) pipeline.microbatch = 4;
  alike = parse_plan(to_json(alike), "p");
  EXPECT_EQ(alike.microbatch, 4);
  for (const PlanPipeline& pipeline : alike.pipelines) EXPECT_FALSE(pipeline.microbatch);
}

TEST(PlanJson, ForeignFiguresInThePredictionAreLeftAlone) {
  std::string json = to_json(example_plan(), -1);
  json.insert(json.find("\"iteration_s\""), "\"their_score\": 7, ");
  EXPECT_DOUBLE_EQ(parse_plan(json, "p").prediction->iteration_s, 1.5);
}

TEST(PlanJson, CandidatesAreThoseOfAResultOrThePlanItself) {
  const std::string path = ::testing::TempDir() + "sailor-candidates-" + std::to_string(getpid());
  const Plan first = example_plan();
  Plan second = first;
  second.microbatch = 2 * first.microbatch;
  const auto candidate = [](const Plan& plan) {
    return R"({"plan": )" + to_json(plan) + R"(, "prediction": {}})";
  };
  write_file_atomically(path, R"({"sailor_plan_result": 1, "candidates": [)" + candidate(first) + "," +
                                  candidate(second) + "]}");
  const std::vector<Plan> both = load_candidates(path);
  ASSERT_EQ(both.size(), 2u);
  EXPECT_EQ(to_json(both[1]), to_json(second));
  write_file_atomically(path, to_json(first));
  ASSERT_EQ(load_candidates(path).size(), 1u);
  write_file_atomically(path, R"({"sailor_plan_result": 1, "status": "infeasible", "candidates": []})");
  EXPECT_THROW(load_candidates(path), InputError);
  std::filesystem::remove(path);
}

TEST(PlanJson, EveryBreakOfTheFormIsOneErrorWithItsLine) {
  auto error = [](const std::string& from, const std::string& to) -> std::string {
    std::string json = to_json(example_plan());
    size_t at = json.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    json.replace(at, from.size(), to);
    try {
      parse_plan(json, "p");
    } catch (const InputError& e) {
      EXPECT_GE(e.where().line, 1);
      return e.what();
    }
    return "no error";
  };
  EXPECT_THAT(error("\"microbatch\": 4", "\"microbatch\": 0"), HasSubstr("microbatch: must be an integer"));
  EXPECT_THAT(error("\"microbatch\": 4", "\"microbatch\": \"4\""), HasSubstr("is the text"));
  EXPECT_THAT(error("\"zero1\"", "\"zero2\""), HasSubstr("unknown key \"zero2\", did you mean \"zero1\"?"));
  EXPECT_THAT(error("\"sailor_plan\": 1", "\"sailor_plan\": 9"), HasSubstr("version 9 is not supported"));
  EXPECT_THAT(error("            4,\n            6", "            5,\n            6"),
              HasSubstr("pipelines[0].stages[1]: begins at layer 5, but layer 4 is next"));
  EXPECT_THAT(error("\"tp\": 4", "\"tp\": 3"), HasSubstr("4 GPUs for a TP degree of 3"));
  EXPECT_THAT(
      error("\"recompute\": \"none\"", "\"recompute\": \"some\""),
      HasSubstr("stages[0].recompute: must be none, selective, light, mlp, full or offload, is \"some\""));
  EXPECT_THAT(error("\"node\": \"a1\",", ""),
              HasSubstr("a stage with the key \"gpus\" needs the key \"node\" too"));
  EXPECT_THAT(error("\"global_batch\": 10", "\"global_batch\": 1e400"), HasSubstr("not valid JSON"));
  EXPECT_THAT(error("\"zero1\": false", "\"zero1\": false, \"zero\": \"optimizer\""),
              HasSubstr("zero: \"zero1\" sets this already"));
  EXPECT_THAT(error("\"zero1\": false", "\"zero\": \"all\""),
              HasSubstr("zero: must be none, optimizer, gradients or parameters"));
}

TEST(PlanJson, SequenceParallelismIsWrittenWhereThereIsAny) {
  Plan plan = example_plan();
  EXPECT_THAT(to_json(plan, -1), ::testing::Not(HasSubstr("sequence_parallel")));
  plan.sequence_parallel = true;
  EXPECT_THAT(to_json(plan, -1), HasSubstr(R"("sequence_parallel":true)"));
  EXPECT_TRUE(parse_plan(to_json(plan), "p").sequence_parallel);
}

TEST(PlanJson, ContextParallelDegreesAreWrittenWhereThereAreAny) {
  Plan plan = example_plan();
  EXPECT_THAT(to_json(plan, -1), ::testing::Not(HasSubstr("cp")));
  PlanStage& stage = plan.pipelines[0].stages[0];
  stage.shape.cp = 2;
  stage.gpus.clear();
  stage.node.clear();
  EXPECT_THAT(to_json(plan, -1), HasSubstr(fmt::format(R"("tp":{},"cp":2)", stage.shape.tp)));
  EXPECT_EQ(parse_plan(to_json(plan), "p").pipelines[0].stages[0].shape, stage.shape);
  stage.node = "a1";
  stage.gpus = {0};
  EXPECT_THAT(test::error_of([&] { parse_plan(to_json(plan), "p"); }),
              HasSubstr(fmt::format("1 GPUs for TP and CP degrees of {} and 2", stage.shape.tp)));
}

TEST(RankLayout, ContextParallelRanksAreWholeTpGroups) {
  Plan plan = example_plan();
  PlanStage stage = plan.pipelines[0].stages[0];
  stage.shape = {.tp = 2, .cp = 3};
  stage.node.clear();
  stage.gpus.clear();
  plan.pipelines = {{1, {stage}}};
  const RankLayout layout(plan);
  ASSERT_EQ(layout.size(), 6);
  for (int rank = 0; rank < 6; ++rank) {
    EXPECT_EQ(layout.slots()[static_cast<size_t>(rank)].tp_rank, rank % 2);
    EXPECT_EQ(layout.slots()[static_cast<size_t>(rank)].cp_rank, rank / 2);
    EXPECT_EQ(is_first_of_stage(layout.slots()[static_cast<size_t>(rank)]), rank == 0);
  }
}

TEST(PlanJson, GroupsOfPipelinesMayShareStates) {
  Plan plan = example_plan();
  EXPECT_THAT(to_json(plan, -1), ::testing::Not(HasSubstr("zero_group")));
  plan.pipelines = {plan.pipelines[0], plan.pipelines[0], plan.pipelines[0], plan.pipelines[0]};
  plan.zero = Zero::parameters;
  plan.zero_group = 2;
  EXPECT_EQ(num_zero_groups(plan), 2);
  EXPECT_EQ(zero_group_of(plan, 3).first, 2);
  EXPECT_EQ(zero_group_of(plan, 3).end, 4);
  const std::string json = to_json(plan, -1);
  EXPECT_THAT(json, HasSubstr(R"("zero":"parameters","zero_group":2)"));
  EXPECT_EQ(parse_plan(json, "p").zero_group, 2);
  const auto error = [&](const std::string& group) {
    std::string changed = json;
    changed.replace(changed.find("\"zero_group\":2"), 14, "\"zero_group\":" + group);
    return test::error_of([&] { parse_plan(changed, "p"); });
  };
  EXPECT_THAT(error("3"), HasSubstr("zero_group: 4 pipelines cannot form groups of 3: use a divisor"));
  EXPECT_THAT(error("5"), HasSubstr("zero_group: must be an integer from 1 to 4"));
  plan.zero_group = 4;  // all of them
  EXPECT_EQ(parse_plan(to_json(plan), "p").zero_group, 0);
  plan.zero = Zero::none;
  EXPECT_THAT(test::error_of([&] { parse_plan(to_json(plan), "p"); }),
              HasSubstr("zero_group: only what ZeRO shards has copies"));
}

TEST(PlanJson, AStageMayDelayTheGradientsOfWeights) {
  Plan plan = example_plan();
  EXPECT_THAT(to_json(plan, -1), ::testing::Not(HasSubstr("weight_delay")));
  EXPECT_EQ(parse_plan(to_json(plan), "p").pipelines[0].stages[0].weight_delay, kWholeBackward);
  for (const int delay : {0, 3}) {
    plan.pipelines[0].stages[0].weight_delay = delay;
    EXPECT_THAT(to_json(plan, -1), HasSubstr(R"("weight_delay":)" + std::to_string(delay)));
    EXPECT_EQ(parse_plan(to_json(plan), "p").pipelines[0].stages[0].weight_delay, delay);
  }
  plan.pipelines[0].stages[0].weight_delay = -2;
  EXPECT_THROW(parse_plan(to_json(plan), "p"), InputError);
}

TEST(PlanJson, AStageMayOffload) {
  Plan plan = example_plan();
  EXPECT_FALSE(offloads(plan));
  EXPECT_THAT(to_json(plan, -1), ::testing::Not(HasSubstr("offload")));
  plan.pipelines[0].stages[0].offload = Offload::optimizer;
  EXPECT_TRUE(offloads(plan));
  const std::string json = to_json(plan, -1);
  EXPECT_THAT(json, HasSubstr(R"("offload":"optimizer")"));
  EXPECT_EQ(parse_plan(json, "p").pipelines[0].stages[0].offload, Offload::optimizer);
  std::string wrong = json;
  wrong.replace(wrong.find(R"("optimizer")"), 11, R"("weights")");
  EXPECT_THROW(parse_plan(wrong, "p"), InputError);
}

TEST(PlanJson, BlocksOfAStageMayRecomputeMoreThanTheOthers) {
  Plan plan = example_plan();
  StageRecompute& recompute = plan.pipelines[0].stages[0].recompute;
  const auto json_of = [&](const StageRecompute& value) {
    recompute = value;
    EXPECT_EQ(parse_plan(to_json(plan), "p").pipelines[0].stages[0].recompute, value);
    return to_json(plan, -1);
  };
  EXPECT_THAT(json_of(Recompute::mlp), HasSubstr(R"("recompute":"mlp")"));
  EXPECT_THAT(json_of({Recompute::full, 2, Recompute::none}), HasSubstr(R"("recompute":{"full":2})"));
  EXPECT_THAT(json_of({Recompute::full, 2, Recompute::light}),
              HasSubstr(R"("recompute":{"full":2,"rest":"light"})"));
  EXPECT_THAT(json_of(Recompute::offload), HasSubstr(R"("recompute":"offload")"));
  EXPECT_TRUE(offloads(plan)) << "inputs of blocks";
  EXPECT_THAT(json_of({Recompute::offload, 2, Recompute::light}),
              HasSubstr(R"("recompute":{"offload":2,"rest":"light"})"));
  EXPECT_EQ(recompute.without_offload(), StageRecompute(Recompute::full, 2, Recompute::light));
  EXPECT_EQ(StageRecompute(Recompute::offload).without_offload(), Recompute::full);
  EXPECT_EQ(StageRecompute(Recompute::mlp).without_offload(), Recompute::mlp);
  // No blocks, or none that differ.
  EXPECT_EQ(StageRecompute(Recompute::full, 0, Recompute::light), Recompute::light);
  EXPECT_EQ(StageRecompute(Recompute::full, 3, Recompute::full), Recompute::full);

  const auto error = [&](const std::string& value) -> std::string {
    const std::string now = R"({"full":3,"rest":"light"})";
    recompute = {Recompute::full, 3, Recompute::light};
    std::string json = to_json(plan, -1);
    try {
      parse_plan(json.replace(json.find(now), now.size(), value), "plan.json");
    } catch (const InputError& e) {
      return e.what();
    }
    return "";
  };
  EXPECT_THAT(error(R"({"full":3,"mlp":1})"), HasSubstr("only one level has a number of blocks"));
  EXPECT_THAT(error(R"({"light":3,"rest":"mlp"})"),
              HasSubstr("must be above the level of the other blocks, \"mlp\""));
  EXPECT_THAT(error(R"({"rest":"mlp"})"), HasSubstr("needs a number of blocks"));
  EXPECT_THAT(error(R"({"full":0})"), HasSubstr("full: must be"));
  EXPECT_THAT(error(R"({"selective":1})"), HasSubstr("unknown key \"selective\""));
}

TEST(PlanJson, OlderReadersGetShardedOptimizersAsAFlag) {
  Plan plan = example_plan();
  for (const Zero zero : {Zero::none, Zero::optimizer}) {
    plan.zero = zero;
    const std::string json = to_json(plan, -1);
    EXPECT_THAT(json, HasSubstr(zero == Zero::none ? "\"zero1\":false" : "\"zero1\":true"));
    EXPECT_EQ(json.find("\"zero\""), std::string::npos);
    EXPECT_EQ(parse_plan(json, "p").zero, zero);
  }
  const std::string word = R"(,"zero":"optimizer")", flag = R"(,"zero1":true)";
  std::string json = to_json(plan, -1);
  json.replace(json.find(flag), flag.size(), word);
  EXPECT_EQ(parse_plan(json, "p").zero, Zero::optimizer);
  // What an older reader could not run, it refuses.
  plan.zero = Zero::gradients;
  EXPECT_THAT(to_json(plan, -1), HasSubstr(R"("zero":"gradients")"));
  EXPECT_EQ(parse_plan(to_json(plan), "p").zero, Zero::gradients);
  plan.zero = Zero::parameters;
  EXPECT_THAT(to_json(plan, -1), HasSubstr(R"("zero":"parameters")"));
}

TEST(RankLayout, RanksRunByPipelineStageAndTpRank) {
  RankLayout layout(example_plan());
  EXPECT_EQ(layout.size(), 7);
  EXPECT_EQ(num_ranks(example_plan()), 7);
  EXPECT_EQ(layout.base(0, 1), 4);
  EXPECT_EQ(layout.base(1, 0), 5);
  EXPECT_EQ(layout.slots()[3].gpu, 5);
  EXPECT_EQ(layout.slots()[3].tp_rank, 3);
  EXPECT_EQ(layout.slots()[6].pipeline, 1);
  EXPECT_EQ(layout.slots()[6].gpu, -1);
  EXPECT_THAT(layout.ranks_on("a1"), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(layout.nodes(), ElementsAre("a1"));
}

TEST(RankLayout, MicrobatchesCoverTheGlobalBatchOnceAndOnlyTheLastIsSmaller) {
  for (int64_t batch : {1, 7, 10, 12, 33}) {
    for (int microbatch : {1, 2, 4, 5}) {
      for (int pipelines : {1, 2, 3}) {
        int64_t total = num_microbatches(batch, microbatch);
        if (total < pipelines) continue;
        Plan plan;
        plan.global_batch = batch;
        plan.microbatch = microbatch;
        for (int share : share_microbatches(total, pipelines)) plan.pipelines.push_back({share, {}});
        int64_t next = 0;
        for (int p = 0; p < pipelines; ++p) {
          for (int m = 0; m < plan.pipelines[static_cast<size_t>(p)].microbatches; ++m) {
            MicrobatchRange range = microbatch_range(plan, p, m);
            EXPECT_EQ(range.first_sequence, next);
            next += range.sequences;
            bool last = next == batch;
            EXPECT_TRUE(last || range.sequences == microbatch);
            EXPECT_GE(range.sequences, 1);
          }
        }
        EXPECT_EQ(next, batch);
      }
    }
  }
  const std::vector<std::vector<std::pair<int64_t, int>>> ranges = {
      {{0, 1}, {1, 1}, {2, 1}, {3, 1}}, {{4, 4}, {8, 4}, {12, 4}}, {{16, 2}, {18, 1}}};
  for (size_t p = 0; p < ranges.size(); ++p)
    for (size_t m = 0; m < ranges[p].size(); ++m) {
      const MicrobatchRange range = microbatch_range(unlike_plan(), static_cast<int>(p), static_cast<int>(m));
      EXPECT_EQ(std::pair(range.first_sequence, range.sequences), ranges[p][m]) << p << " " << m;
    }
  EXPECT_THROW(microbatch_range(example_plan(), 0, 2), std::out_of_range);
  EXPECT_THROW(microbatch_range(example_plan(), 2, 0), std::out_of_range);
}

}  // namespace
}  // namespace sailor
