// Templates of plans: assignment to nodes, division of layers and microbatches.
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <set>

#include "planner/plan/plan_json.h"
#include "planner/plan/validate.h"
#include "planner/search/native/bound.h"
#include "planner/search/native/compositions.h"
#include "planner/search/native/cut_layers.h"
#include "planner/search/native/few_gpus.h"
#include "planner/search/native/placement.h"
#include "planner/search/search.h"
#include "tests/unit/planner/instance.h"

namespace sailor::native {
namespace {

// What a search has of an instance.
struct TemplateProblem {
  explicit TemplateProblem(const test::Instance& in, int64_t steps = int64_t{1} << 40)
      : context(in.context()),
        resources(usable_resources(context, {}, rejected)),
        space(context, resources),
        scorer(space, goal_of(in.job), steps, deadline) {}

  std::map<std::string, int64_t> rejected;
  const PlanningContext context;
  const Resources resources;
  const Space space;
  Deadline deadline{60};
  Scorer scorer;
};

// Four nodes of four GPUs, six layers, 64 sequences.
struct Templates : ::testing::Test {
  test::Instance in = test::empty_instance(4, 64);

  Templates() {
    in.add_type("t", 0.02, int64_t{1} << 40, 3.6, {1}, {1, 2});
    for (int node = 0; node < 4; ++node) in.add_node("n" + std::to_string(node), "t", 4);
  }

  // Pipelines of four stages at TP degree 1.
  PlanTemplate four_stages(const Space& space, int pipelines, int block) const {
    PlanTemplate of;
    of.block = block;
    TemplateClass pipeline;
    pipeline.pipelines = pipelines;
    pipeline.microbatches = 64;
    for (const int end : {1, 3, 5, 6})
      pipeline.stages.push_back({space.option_of(0, {1}), end, Recompute::none});
    of.classes = {pipeline};
    return of;
  }

  // Nodes that a stage's replicas are on, and a pipeline's stages.
  static size_t nodes_of_stage(const Plan& plan, size_t stage) {
    std::set<std::string> nodes;
    for (const PlanPipeline& pipeline : plan.pipelines) nodes.insert(pipeline.stages[stage].node);
    return nodes.size();
  }
  static size_t nodes_of_pipeline(const Plan& plan, size_t pipeline) {
    std::set<std::string> nodes;
    for (const PlanStage& stage : plan.pipelines[pipeline].stages) nodes.insert(stage.node);
    return nodes.size();
  }
};

TEST_F(Templates, TheBlockSaysWhoSharesANode) {
  TemplateProblem problem(in);
  const Space& space = problem.space;
  CompactPlan compact;
  for (const auto& [block, of_stage, of_pipeline] : {std::tuple(1, 4u, 1u), {4, 1u, 4u}, {2, 2u, 2u}}) {
    ASSERT_TRUE(assign(space, four_stages(space, 4, block), compact));
    const Plan plan = plan_of(space, compact);
    EXPECT_EQ(nodes_of_stage(plan, 0), of_stage) << block;
    EXPECT_EQ(nodes_of_pipeline(plan, 0), of_pipeline) << block;
    EXPECT_TRUE(check_plan(plan, in.job).empty());
    EXPECT_TRUE(check_plan(plan, in.snapshot).empty());
    PlanTemplate back;
    ASSERT_TRUE(template_of(space, plan, back));
    EXPECT_EQ(back.classes, four_stages(space, 4, block).classes);
  }
  EXPECT_FALSE(assign(space, four_stages(space, 5, 1), compact)) << "20 GPUs of 16";
}

TEST_F(Templates, EvenDealingUsesAllNodesAlike) {
  TemplateProblem problem(in);
  const Space& space = problem.space;
  PlanTemplate of = four_stages(space, 3, 1);
  of.classes[0].stages = {{space.option_of(0, {1}), 6, Recompute::none}};
  of.classes[0].pipelines = 6;
  std::map<int, int> on;
  for (const bool even : {false, true}) {
    of.fill = even ? Fill::even : Fill::packed;
    CompactPlan compact;
    ASSERT_TRUE(assign(space, of, compact));
    on.clear();
    for (const CompactStage& stage : compact.stages) ++on[stage.node];
    EXPECT_EQ(on[0], even ? 3 : 4);
    EXPECT_EQ(on[1], even ? 3 : 2);
  }
}

TEST_F(Templates, ReplicasOfAStageGoToTheNodeThatTheyFillBest) {
  in = test::empty_instance(4, 64);
  in.add_type("t", 0.02, int64_t{1} << 40, 3.6, {1}, {1, 2});
  in.add_node("n0", "t", 3);
  in.add_node("n1", "t", 2);
  TemplateProblem problem(in);
  const Space& space = problem.space;
  PlanTemplate of = four_stages(space, 1, 1);
  of.classes[0].stages = {{space.option_of(0, {2}), 2, Recompute::none},
                          {space.option_of(0, {2}), 4, Recompute::none},
                          {space.option_of(0, {1}), 6, Recompute::none}};
  const auto nodes = [&](Fill fill) {
    of.fill = fill;
    CompactPlan compact;
    EXPECT_TRUE(assign(space, of, compact));
    std::vector<int> out;
    for (const CompactStage& stage : compact.stages) out.push_back(stage.node);
    return out;
  };
  EXPECT_EQ(nodes(Fill::packed), (std::vector<int>{0, 1, 0}));
  EXPECT_EQ(nodes(Fill::together), (std::vector<int>{1, 0, 0}));
  // No node holds both replicas: as they come.
  of.classes[0].stages = {{space.option_of(0, {2}), 6, Recompute::none}};
  of.classes[0].pipelines = of.block = 2;
  EXPECT_EQ(nodes(Fill::together), (std::vector<int>{0, 1}));
}

TEST_F(Templates, InterleavedMicrobatchesGoInRounds) {
  TemplateProblem problem(in);
  const Space& space = problem.space;
  PlanTemplate of = four_stages(space, 3, 1);
  of.interleave = 2;  // two groups of GPUs with two chunks each
  CompactPlan compact;
  ASSERT_TRUE(assign(space, of, compact));
  EXPECT_EQ(compact.microbatches, (std::vector<int>{22, 22, 20}));
  EXPECT_EQ(compact.of(0)[0].node, compact.of(0)[2].node);
  of.classes[0].microbatches = 63;
  EXPECT_FALSE(assign(space, of, compact));
}

TEST_F(Templates, MicrobatchesOfUnlikeSizesShareTheBatchByTime) {
  in = test::empty_instance(4, 61);
  in.add_type("t", 0.02, int64_t{1} << 40, 3.6, {1, 2, 4}, {1});
  in.add_type("u", 0.06, int64_t{1} << 40, 1, {1, 2, 4}, {1});  // slower
  for (const char* type : {"t", "u"})
    for (int node = 0; node < 2; ++node) in.add_node(type + std::to_string(node), type, 2);
  TemplateProblem problem(in);
  const Space& space = problem.space;
  for (const auto& [of_fast, of_slow] : {std::pair(4, 1), {1, 4}, {4, 2}, {2, 1}}) {
    PlanTemplate of;
    of.microbatch = of_slow;
    for (const int pool : {0, 1})
      of.classes.push_back({.stages = {{space.option_of(pool, {1}), 2}, {space.option_of(pool, {1}), 6}},
                            .pipelines = 2 - pool,
                            .microbatch = pool == 0 ? of_fast : 0});
    ASSERT_TRUE(share_batch(space, of));
    CompactPlan compact;
    ASSERT_TRUE(assign(space, of, compact));
    const Plan plan = plan_of(space, compact);
    EXPECT_TRUE(check_plan(plan, in.job).empty()) << of_fast << " " << of_slow;
    EXPECT_EQ(plan.microbatch, std::min(of_fast, of_slow));
    PlanTemplate back;
    ASSERT_TRUE(template_of(space, plan, back));
    CompactPlan again;
    ASSERT_TRUE(assign(space, back, again));
    EXPECT_EQ(to_json(plan_of(space, again)), to_json(plan));
    // No pipeline ends later than another one plus a microbatch of its own.
    double latest_s = 0, least_s = kNever;
    for (const TemplateClass& pipelines : of.classes) {
      const ClassTimes times = times_of(space, of, pipelines);
      const auto each =
          static_cast<double>((pipelines.microbatches + pipelines.pipelines - 1) / pipelines.pipelines);
      latest_s = std::max(latest_s, times.pipeline_s(each, 1));
      least_s = std::min(least_s, times.pipeline_s(each + 1, 1));
    }
    EXPECT_LE(latest_s, least_s * (1 + 1e-9)) << of_fast << " " << of_slow;
    // Other numbers are no plan.
    of.classes[0].microbatches += 2 * of_slow;
    EXPECT_FALSE(assign(space, of, compact));
    of.interleave = 2;
    EXPECT_FALSE(share_batch(space, of));
  }
}

TEST_F(Templates, TheCutIsTheLeastSlowestStageThatFits) {
  TemplateProblem problem(in);
  const Space& space = problem.space;
  Scorer& scorer = problem.scorer;
  PlanTemplate of = four_stages(space, 1, 1);
  ASSERT_TRUE(cut_layers(scorer, of, 0, false));
  // Layers take 0.2, four times 1, and 1.3 units: no stage need take more than 1.3.
  EXPECT_NEAR(times_of(space, of, of.classes[0]).slowest_s, 0.02 * 2, 1e-3);
  EXPECT_EQ(of.classes[0].stages.back().end_layer, 6);
  const double value = scorer.score(of);
  EXPECT_NEAR(value,
              simulate(problem.context, plan_of(space,
                                                [&] {
                                                  CompactPlan compact;
                                                  EXPECT_TRUE(assign(space, of, compact));
                                                  return compact;
                                                }()))
                  .iteration_s,
              1e-12);
  EXPECT_LE(least_possible(space, all_plan_features(), kNever, problem.deadline).iteration_s, value);
}

TEST_F(Templates, OfFewMicrobatchesTheFasterStageTakesMore) {
  in.add_type("u", 0.06, int64_t{1} << 40, 1, {1}, {1});  // slower
  in.add_node("m0", "u", 1);
  TemplateProblem problem(in);
  const Space& space = problem.space;
  Scorer& scorer = problem.scorer;
  PlanTemplate of = four_stages(space, 1, 1);
  of.classes[0].stages = {{space.option_of(1, {1}), 3, Recompute::none},
                          {space.option_of(0, {1}), 6, Recompute::none}};
  for (const int microbatches : {1, 64}) {
    of.classes[0].microbatches = microbatches;
    ASSERT_TRUE(cut_layers(scorer, of, 0, false));
    const PlanTemplate before = of;
    const double before_s = times_of(space, of, of.classes[0]).pipeline_s(microbatches, 1);
    EXPECT_EQ(shorten(scorer, of, 0), microbatches == 1);
    if (microbatches == 1) {
      EXPECT_EQ(of.classes[0].stages[0].end_layer, 1);
      EXPECT_LT(times_of(space, of, of.classes[0]).pipeline_s(1, 1), before_s);
    } else {
      EXPECT_EQ(of, before);
    }
  }
}

TEST_F(Templates, ACutComputesAgainOnlyWhereThatReachesFurther) {
  for (auto& [shape, sizes] : in.profiles.sizes.by_shape)
    for (LayerSizes& layer : sizes) {
      layer.activation_bytes = 40'000'000;
      layer.checkpoint_bytes = 1'000'000;
    }
  const auto cut = [&](int64_t memory_bytes, bool choose, PlanTemplate& of) {
    in.catalog.gpu_types.at("t").memory_bytes = memory_bytes;
    TemplateProblem problem(in);
    const Space& space = problem.space;
    Scorer& scorer = problem.scorer;
    of = four_stages(space, 1, 1);
    of.classes[0].stages.erase(of.classes[0].stages.begin(), of.classes[0].stages.begin() + 2);
    if (!cut_layers(scorer, of, 0, choose)) return -1.0;
    return times_of(space, of, of.classes[0]).slowest_s;
  };
  const auto again = [](const PlanTemplate& of) {
    int stages = 0;
    for (const TemplateStage& stage : of.classes[0].stages) stages += stage.recompute != Recompute::none;
    return stages;
  };
  PlanTemplate of;
  const double fastest_s = cut(int64_t{1} << 40, true, of);
  EXPECT_EQ(again(of), 0) << "with memory for all, nothing is gained";
  int helped = 0;
  for (int64_t memory_bytes = int64_t{1} << 20; memory_bytes < int64_t{1} << 30;
       memory_bytes += memory_bytes / 16) {
    const double as_said_s = cut(memory_bytes, false, of), chosen_s = cut(memory_bytes, true, of);
    EXPECT_GE(chosen_s < 0 ? fastest_s : chosen_s, fastest_s * (1 - 1e-3));
    if (as_said_s >= 0) {
      ASSERT_GE(chosen_s, 0) << memory_bytes;
      EXPECT_LE(chosen_s, as_said_s * (1 + 1e-3)) << memory_bytes;
    }
    helped += chosen_s >= 0 && (as_said_s < 0 || chosen_s < as_said_s * 0.99) && again(of) > 0;
  }
  EXPECT_GT(helped, 0);
}

TEST_F(Templates, ASearchThatIsStoppedListsNothing) {
  const std::atomic<bool> stop = true;
  PlanOptions options;
  options.stop = &stop;
  options.explain = false;
  const SearchResult result = search(in.context(), options);
  EXPECT_EQ(result.status, SearchStatus::time_limit);
  EXPECT_EQ(result.stats.configurations, 0);
}

TEST_F(Templates, ALimitOfEffortDecidesWhatIsSearchedATimeLimitDoesNot) {
  const auto scored = [&](double effort_limit_s, double time_limit_s) {
    PlanOptions options;
    options.effort_limit_s = effort_limit_s;
    options.time_limit_s = time_limit_s;
    const SearchResult result = search(in.context(), options);
    EXPECT_TRUE(result.stats.complete);
    return result.stats.plans_scored;
  };
  const auto all = scored(kNever, 600), few = scored(0.002, 600);
  EXPECT_LT(few, all);
  EXPECT_EQ(scored(0.002, 6000), few);
}

TEST_F(Templates, TheBoundCountsPathsMemoryAndPipelines) {
  // One type, a fast network: what the best plan takes beyond the bound is that layers are whole.
  for (const int64_t memory_bytes : {int64_t{1} << 40, int64_t{40} << 20}) {
    in.catalog.gpu_types.at("t").memory_bytes = memory_bytes;
    TemplateProblem problem(in);
    const Space& space = problem.space;
    PlanOptions options;
    const SearchResult result = search(problem.context, options);
    ASSERT_EQ(result.status, SearchStatus::found) << memory_bytes;
    Deadline over(0);
    const double best_s = result.candidates[0].prediction.iteration_s,
                 bound_s = least_possible(space, all_plan_features(), kNever, problem.deadline).iteration_s;
    EXPECT_EQ(least_possible(space, all_plan_features(), kNever, over).iteration_s, 0);
    EXPECT_LE(bound_s, best_s) << memory_bytes;
    EXPECT_GE(bound_s, 0.5 * best_s) << memory_bytes;
  }
}

TEST_F(Templates, ExchangedGroupsOfGpusSendLessOverTheNetwork) {
  in.profiles.network = {};
  for (const bool near : {false, true})
    in.profiles.network.add({{"", "", 0},
                             {"", "", 0},
                             near ? NetworkProfile::Scope::intra_node : NetworkProfile::Scope::inter_node,
                             LinkCurve::from_rates(1e-5, near ? 1e11 : 1e8, near ? 1e11 : 1e8)});
  TemplateProblem problem(in);
  const Space& space = problem.space;
  Scorer& scorer = problem.scorer;
  // Two pipelines of two stages, each across two nodes.
  PlanTemplate of = four_stages(space, 2, 1);
  of.classes[0].stages = {{space.option_of(0, {1}), 3, Recompute::none},
                          {space.option_of(0, {1}), 6, Recompute::none}};
  CompactPlan plan;
  ASSERT_TRUE(assign(space, of, plan));
  const double together_s = scorer.model().iteration(plan).iteration_s;
  plan.stages[1].node = plan.stages[2].node = 1;
  const double apart_s = scorer.model().iteration(plan).iteration_s;
  ASSERT_GT(apart_s, together_s);
  improve_placement(space, scorer.model(), goal_of(in.job), plan, {});
  EXPECT_LT(scorer.model().iteration(plan).iteration_s, apart_s);
  EXPECT_TRUE(check_plan(plan_of(space, plan), in.snapshot).empty());
}

TEST_F(Templates, NodesThatGainNothingAreVacated) {
  in.job.resources.max_gpus["t"] = 3;
  for (const bool near_is_faster : {true, false}) {
    in.profiles.network = {};
    for (const bool near : {false, true})
      in.profiles.network.add({{"", "", 0},
                               {"", "", 0},
                               near ? NetworkProfile::Scope::intra_node : NetworkProfile::Scope::inter_node,
                               LinkCurve::from_rates(1e-5, near == near_is_faster ? 1e11 : 1e8, 1e11)});
    TemplateProblem problem(in);
    const Space& space = problem.space;
    PlanTemplate of = four_stages(space, 3, 1);
    of.classes[0].stages = {{space.option_of(0, {1}), 6, Recompute::none}};
    CompactPlan plan;
    ASSERT_TRUE(assign(space, of, plan));
    plan.stages[2].node = 1;
    IterationModel& model = problem.scorer.model();
    const double spread_s = model.iteration(plan).iteration_s;
    use_fewer_nodes(space, model, goal_of(in.job), plan);
    EXPECT_EQ(plan.stages[2].node, near_is_faster ? 0 : 1);
    EXPECT_LE(model.iteration(plan).iteration_s, spread_s * (1 + 1e-4));
    EXPECT_TRUE(check_plan(plan_of(space, plan), in.snapshot).empty());
  }
}

TEST_F(Templates, NodesThatNoPlanFillsAreLeftOut) {
  for (int node = 4; node < 400; ++node) in.add_node("n" + std::to_string(node), "t", 4);
  TemplateProblem problem(in);
  // 64 pipelines of 6 stages, two groups of two GPUs on a node.
  EXPECT_EQ(problem.space.nodes.size(), 192u);
  EXPECT_EQ(problem.space.gpus(), 768);
}

TEST_F(Templates, EstimatesCountTheLinkBetweenZones) {
  for (int node = 4; node < 8; ++node) in.add_node("n" + std::to_string(node), "t", 4, "z2");
  in.profiles.network.add(
      {{"", "z1", 0}, {"", "z2", 0}, NetworkProfile::Scope::any, LinkCurve::from_rates(1e-3, 1e6, 1e6)});
  TemplateProblem problem(in);
  const Space& space = problem.space;
  ASSERT_TRUE(space.pools.back().joint);
  EXPECT_EQ(space.pools.back().zone_gpus, 16);
  Estimates estimates(space);
  const auto shape = [&](int pool, int pipelines, int groups) {
    TemplateShape out;
    out.pipelines = pipelines;
    out.num_parts = 1;
    out.parts[0] = {space.option_of(pool, {1}), groups};
    return out;
  };
  const auto estimate_s = [&](const TemplateShape& of) {
    return estimates.iteration_s(of, 64.0 / of.pipelines, of.pipelines);
  };
  // Twice the GPUs, half of them in the other zone.
  const int both = static_cast<int>(space.pools.size()) - 1;
  for (const int groups : {1, 4}) {
    const TemplateShape one = shape(0, 16 / groups, groups), two = shape(both, 32 / groups, groups);
    EXPECT_GT(estimate_s(two), estimate_s(one)) << groups;
    PlanTemplate of_two = template_of(space, two), of_one = template_of(space, one);
    ASSERT_TRUE(cut_layers(problem.scorer, of_one, 0, false) && cut_layers(problem.scorer, of_two, 0, false));
    EXPECT_GT(problem.scorer.score(of_two), problem.scorer.score(of_one)) << groups;
  }
  EXPECT_EQ(estimate_s(shape(both, 16, 1)), estimate_s(shape(0, 16, 1)));
}

TEST_F(Templates, CompositionsHoldTheModelWithinTheGpus) {
  in.add_type("slow", 0.05, int64_t{1} << 40, 1, {1}, {1, 2});
  in.add_node("m0", "slow", 3);
  TemplateProblem problem(in);
  const Space& space = problem.space;
  Estimates estimates(space);
  TemplateShape of;
  of.pipelines = 3;
  size_t unlike = 0;
  for (const std::vector<int>& pools : {std::vector<int>{0}, {0, 1}, {1, 0}})
    for (const TemplateShape& shape : compositions(estimates, pools, of, Zero::none, kNever, {})) {
      std::map<int, int> used;
      for (size_t i = 0; i < shape.num_parts; ++i) {
        const SpaceOption& option = space.options[static_cast<size_t>(shape.parts[i].option)];
        used[option.pool] += shape.pipelines * shape.parts[i].groups * option.shape.tp;
      }
      for (const auto& [pool, gpus] : used) EXPECT_LE(gpus, space.pools[static_cast<size_t>(pool)].gpus);
      EXPECT_LE(shape.groups(), space.layers());
      unlike += shape.num_parts > 1;
    }
  EXPECT_GT(unlike, 0u);
  EXPECT_TRUE(compositions(estimates, {0}, of, Zero::none, 1e-9, {}).empty()) << "no stage is that fast";
}

TEST_F(Templates, AFewGpusAreUsedInUnlikeStagesWhereOnlyTheseFit) {
  // The block in the middle needs two GPUs, the ends one each: 4 GPUs on two nodes, and no other pipeline
  // fits.
  in = test::empty_instance(1, 8);
  in.add_type("t", 0.02, 0, 3.6, {1}, {1, 2});
  in.add_node("n0", "t", 3);
  in.add_node("n1", "t", 1);
  for (auto& [shape, sizes] : in.profiles.sizes.by_shape) sizes[1].parameters = 10'000'000 / shape.tp;
  const auto bytes = [&](int first, int end, int tp) {
    StageMemoryInput stage;
    const PlanningContext context = in.context();
    stage.first_layer = first;
    stage.end_layer = end;
    stage.in_flight = 3 - first;
    stage.several_microbatches = true;
    int64_t low = 0, high = int64_t{1} << 40;
    while (low < high) {
      const int64_t middle = (low + high) / 2;
      in.catalog.gpu_types.at("t").memory_bytes = middle;
      StageKinds at(context);
      stage.kind = at.number("t", "z1", {tp});
      if (IterationModel(at).fits(stage))
        high = middle;
      else
        low = middle + 1;
    }
    return low;
  };
  in.catalog.gpu_types.at("t").memory_bytes = std::max({bytes(0, 1, 1), bytes(1, 2, 2), bytes(2, 3, 1)});
  const SearchResult result = search(in.context(), {});
  ASSERT_EQ(result.status, SearchStatus::found) << result.reason;
  std::vector<int> degrees;
  for (const PlanStage& stage : result.candidates[0].plan.pipelines[0].stages)
    degrees.push_back(stage.shape.tp);
  EXPECT_EQ(degrees, (std::vector<int>{1, 2, 1}));
}

TEST_F(Templates, AFewGpusMakeUnlikePipelinesSideBySide) {
  in = test::empty_instance(1, 64);
  in.add_type("fast", 0.02, int64_t{1} << 40, 3.6, {1}, {1});
  in.add_type("slow", 0.05, int64_t{1} << 40, 1, {1}, {1});
  in.add_node("n0", "fast", 2);
  in.add_node("m0", "slow", 1);
  TemplateProblem problem(in, 10'000'000);
  Scorer& scorer = problem.scorer;
  score_few_gpus(scorer, all_plan_features(), {});
  ASSERT_FALSE(scorer.ranked(1).empty());
  const PlanTemplate best = scorer.ranked(1).front().second;
  ASSERT_EQ(best.classes.size(), 2u);
  EXPECT_EQ(best.pipelines(), 3);
  std::map<size_t, int64_t> microbatches;  // by pool
  for (const TemplateClass& of : best.classes)
    microbatches[static_cast<size_t>(of.stages[0].option)] = of.microbatches / of.pipelines;
  EXPECT_GT(microbatches[0], 2 * microbatches[1]) << "as fast as they are";
}

TEST_F(Templates, AFrameworkThatShardsAlwaysNeedsLessMemoryWithMoreReplicas) {
  FrameworkStyle style = own_framework();
  style.zero = Zero::optimizer;
  bool differs = false;
  for (int64_t memory_bytes = 1 << 16; memory_bytes < int64_t{1} << 40; memory_bytes += memory_bytes / 8) {
    in.catalog.gpu_types.at("t").memory_bytes = memory_bytes;
    const PlanningContext context{in.job, in.snapshot, in.catalog, in.profiles, style};
    StageKinds kinds(context);
    StageMemoryInput stage;
    stage.kind = kinds.number("t", in.snapshot.nodes.front().zone, {1});
    stage.end_layer = static_cast<int>(kinds[stage.kind].sizes->size());
    IterationModel model(kinds);
    stage.replicas = 2;
    const bool with_two = model.fits(stage);
    stage.replicas = 64;
    EXPECT_EQ(model.fits(stage), IterationModel(kinds).fits(stage)) << memory_bytes;
    differs = differs || with_two != model.fits(stage);
  }
  EXPECT_TRUE(differs);
}

}  // namespace
}  // namespace sailor::native
