// The plan that a job goes on with: cut down when there is nothing to search with, and placed where its state
// is.
#include "trainer/elastic/replanner.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "planner/inputs/load_inputs.h"
#include "planner/inputs/search_request.h"
#include "planner/plan/plan_json.h"
#include "planner/plan/validate.h"
#include "planner/report/candidate_table.h"
#include "planner/simulator/change_memory.h"
#include "planner/spec/error.h"
#include "tests/unit/planner/scratch.h"
#include "tests/unit/trainer/elastic/controlled_job.h"
#include "trainer/elastic/keep_stages.h"

namespace sailor {
namespace {

using testing::HasSubstr;

PlanStage stage(int first, int end, int tp, const std::string& node, std::vector<int> gpus) {
  PlanStage stage;
  stage.first_layer = first;
  stage.end_layer = end;
  stage.gpu_type = "A";
  stage.zone = "z";
  stage.shape.tp = tp;
  stage.node = node;
  stage.gpus = std::move(gpus);
  return stage;
}

Plan plan_of(std::vector<PlanPipeline> pipelines, int64_t global_batch = 4, int microbatch = 1) {
  Plan plan;
  plan.model = "m";
  plan.global_batch = global_batch;
  plan.microbatch = microbatch;
  plan.pipelines = std::move(pipelines);
  return plan;
}

SnapshotNode node_of(const std::string& name, std::vector<int> gpus) {
  SnapshotNode node;
  node.name = name;
  node.zone = node.region = "z";
  node.gpu_type = "A";
  node.gpus = static_cast<int>(gpus.size());
  node.free_gpus = std::move(gpus);
  return node;
}
Snapshot snapshot_of(std::vector<SnapshotNode> nodes) {
  Snapshot snapshot;
  snapshot.nodes = std::move(nodes);
  return snapshot;
}

Replanner::Options nowhere() {
  Replanner::Options options;
  options.site_config = "/nowhere/sailor.yaml";
  return options;
}

struct ReplannerTest : testing::Test {
  JobSpec job = controlled_job(/*global_batch=*/12, /*steps=*/10);
  // Three pipelines: two stages, one of TP 2; a single stage; two single GPUs.
  Plan plan = plan_of({{2, {stage(0, 3, 2, "n1", {0, 1}), stage(3, 6, 1, "n2", {0})}},
                       {2, {stage(0, 6, 1, "n2", {1})}},
                       {2, {stage(0, 2, 1, "n3", {0}), stage(2, 6, 1, "n3", {1})}}},
                      12, 2);
  Replanner replanner{job, plan, nowhere()};

  std::vector<LiveGpu> all() const {
    return {{"n1", 0}, {"n1", 1}, {"n2", 0}, {"n2", 1}, {"n3", 0}, {"n3", 1}};
  }
};

TEST_F(ReplannerTest, WithoutASiteConfigThePipelinesThatAreWholeGoOnWithTheSameBatch) {
  std::vector<LiveGpu> left = all();
  left.erase(left.begin());  // GPU 0 of n1: the first pipeline is not whole
  const Replanned replanned = replanner.plan_for(left, plan);
  ASSERT_TRUE(replanned.plan) << replanned.text;
  EXPECT_EQ(replanned.plan->pipelines.size(), 2u);
  EXPECT_EQ(replanned.plan->pipelines[0].microbatches, 3);
  EXPECT_EQ(replanned.plan->pipelines[1].microbatches, 3);
  EXPECT_EQ(replanned.plan->global_batch, 12);
  EXPECT_TRUE(check_plan(*replanned.plan, job).empty());
  EXPECT_THAT(replanned.text, HasSubstr("2 of the plan's 3 pipelines"));
  EXPECT_THAT(replanned.text, HasSubstr("/nowhere/sailor.yaml"));
}

TEST_F(ReplannerTest, WhatCameBackIsUsedAsInTheBeginning) {
  std::vector<LiveGpu> left = all();
  left.erase(left.begin());
  const Plan less = *replanner.plan_for(left, plan).plan;
  const Plan again = *replanner.plan_for(all(), less).plan;
  EXPECT_EQ(again.pipelines.size(), 3u);
  EXPECT_EQ(again.pipelines[0].microbatches, 2);
  EXPECT_TRUE(replanner.better(again, less));
  EXPECT_FALSE(replanner.better(less, again));
}

TEST_F(ReplannerTest, NoWholePipelineIsNoPlan) {
  const Replanned replanned = replanner.plan_for({{"n1", 0}, {"n2", 0}, {"n3", 1}}, plan);
  EXPECT_FALSE(replanned.plan);
  EXPECT_THAT(replanned.text, HasSubstr("no plan for the 3 remaining GPUs"));
}

TEST_F(ReplannerTest, ASearchShowsTheCandidatesThatItChoseFrom) {
  const std::string fixtures = std::string(SAILOR_SOURCE_DIR) + "/tests/golden/fixtures";
  const JobSpec job_there = load_job_spec(fixtures + "/sailor-42/job.yaml");
  const Plan in_force = load_plan(fixtures + "/sailor-42/plan.json");
  Replanner::Options options;
  options.site_config = fixtures + "/sailor.yaml";
  options.time.limit_s = 60;
  const Replanner searching(job_there, in_force, options);
  const Replanned replanned = searching.plan_for({{"q1", 0}, {"q1", 1}, {"s2", 0}, {"s2", 1}}, in_force);
  ASSERT_TRUE(replanned.plan) << replanned.text;
  EXPECT_EQ(replanned.text, "new search");
  EXPECT_THAT(replanned.table, HasSubstr("\n* "));
  EXPECT_THAT(replanned.table, HasSubstr("search complete"));
  EXPECT_EQ(replanner.plan_for(all(), plan).table, "") << "nothing was searched";
  ASSERT_EQ(replanned.nodes.nodes.size(), 2u);
  EXPECT_EQ(replanned.nodes.nodes[1].free_gpus, (std::vector<int>{0, 1}));
}

TEST_F(ReplannerTest, PrefersFewerNodesToNextToNothing) {
  const auto candidate = [&](std::vector<std::string> nodes, double iteration_s) {
    Candidate out;
    for (const std::string& node : nodes) out.plan.pipelines.push_back({2, {stage(0, 6, 1, node, {0})}});
    out.prediction.iteration_s = iteration_s;
    return out;
  };
  std::vector<Candidate> candidates = {candidate({"a", "b", "c"}, 1), candidate({"a", "b", "d"}, 1.001),
                                       candidate({"a", "b"}, 1.004), candidate({"a"}, 1.01)};
  prefer_fewer_nodes(Objective{}, candidates);
  EXPECT_EQ(candidates[0].prediction.iteration_s, 1.004);
  EXPECT_EQ(candidates[1].prediction.iteration_s, 1) << "the others stay in order";
  EXPECT_EQ(candidates[2].prediction.iteration_s, 1.001);
  prefer_fewer_nodes(Objective{}, candidates);
  EXPECT_EQ(candidates[0].prediction.iteration_s, 1.004);
}

TEST_F(ReplannerTest, PlansTheSameWithWhatARunKeeps) {
  const std::string fixtures = std::string(SAILOR_SOURCE_DIR) + "/tests/golden/fixtures";
  const JobSpec job_there = load_job_spec(fixtures + "/sailor-42/job.yaml");
  const Plan in_force = load_plan(fixtures + "/sailor-42/plan.json");
  Replanner::Options options;
  options.site_config = fixtures + "/sailor.yaml";
  options.time.limit_s = 20;
  const std::vector<LiveGpu> gpus = {{"q1", 0}, {"q1", 1}, {"s2", 0}, {"s2", 1}};
  const Replanner at_the_site(job_there, in_force, options);
  const std::string run = test::scratch_directory("replanner");
  write_planning(run, at_the_site.planning_files());
  options.site_config = planning_of(run) + "/sailor.yaml";
  const Replanner with_the_run(job_there, in_force, options);
  const Replanned there = at_the_site.plan_for(gpus, in_force), here = with_the_run.plan_for(gpus, in_force);
  ASSERT_TRUE(there.plan && here.plan) << here.text;
  EXPECT_EQ(to_json(*here.plan), to_json(*there.plan));
  EXPECT_EQ(replanner.planning_files(), PlanningFiles()) << "nothing is known of a site";
}

// bf16 on A100s; V100s, which lack it, join; then the A100s are lost, and come back.
TEST(ReplannerPrecision, StaysUnlessTheRemainingTypesLackIt) {
  Replanner::Options options;
  options.site_config = test::scratch_directory("precision") + "/sailor.yaml";
  std::ofstream(options.site_config) << "sailor_site: 1\n";
  const JobSpec job = parse_job_spec(
      "model: {family: llama, layers: 8, hidden: 1024, heads: 16, feed_forward: 4096, sequence: 1024, "
      "vocabulary: 32000}\n"
      "training: {global_batch: 32, steps: 10, precision: 16-bit}\nelastic: {enabled: true}\n",
      "job.yaml");
  const auto nodes = [](const std::string& name, const std::string& type, int count) {
    return parse_snapshot(
        fmt::format("sailor_snapshot: 1\nnodes:\n  - {{name: {}, count: {}, zone: z, gpu_type: "
                    "{}, gpus: 4}}\n",
                    name, count, type),
        "cluster.yaml");
  };
  const Snapshot a100s = nodes("a", "A100-80", 1), v100s = nodes("v", "V100-32", 4);
  const PlanningInputs inputs =
      load_inputs(job, options.site_config, {}, [&](const SiteConfig&) { return a100s; });
  const Plan first = search(inputs.context(), plan_options({}, inputs.site)).candidates.at(0).plan;
  ASSERT_EQ(first.precision, Precision::bf16);
  Replanner replanner(job, first, options);
  std::vector<LiveGpu> on_a, on_v;
  for (int gpu = 0; gpu < 4; ++gpu) on_a.push_back({a100s.nodes[0].name, gpu});
  for (const SnapshotNode& node : v100s.nodes) {
    EXPECT_TRUE(replanner.could_use(node));
    replanner.add_node(node);
    for (int gpu = 0; gpu < 4; ++gpu) on_v.push_back({node.name, gpu});
  }
  std::vector<LiveGpu> all = on_a;
  all.insert(all.end(), on_v.begin(), on_v.end());

  const Plan grown = replanner.plan_for(all, first).plan.value();
  EXPECT_EQ(grown.precision, Precision::bf16);
  EXPECT_EQ(gpu_types_of(grown), std::set<std::string>{"A100-80"});
  const Plan forced = replanner.plan_for(on_v, grown).plan.value();
  EXPECT_EQ(forced.precision, Precision::fp16);
  const Plan back = replanner.plan_for(all, forced).plan.value();
  EXPECT_EQ(back.precision, Precision::fp16);
  EXPECT_EQ(gpu_types_of(back).count("A100-80"), 1u);
}

// Replicas on two nodes whose memory holds a training, and two states if it is large enough.
TEST(ReplannerMemory, KnowsWhichRanksHaveNoRoomForTheStatesOfTwoPlans) {
  const std::string directory = test::scratch_directory("memory");
  Replanner::Options options;
  options.site_config = directory + "/sailor.yaml";
  std::ofstream(options.site_config) << "sailor_site: 1\ncatalog: catalog.yaml\n";
  const JobSpec job = parse_job_spec(
      "model: {family: gpt2, layers: 4, hidden: 256, heads: 4, sequence: 16, vocabulary: 256}\n"
      "training: {global_batch: 2, steps: 10}\nelastic: {enabled: true}\n",
      "job.yaml");
  const Snapshot nodes =
      parse_snapshot("sailor_snapshot: 1\nnodes:\n  - {name: n, count: 2, zone: z, gpu_type: box, gpus: 1}\n",
                     "cluster.yaml");
  const auto with_memory = [&](int64_t bytes) {
    std::ofstream(directory + "/catalog.yaml") << fmt::format(
        "sailor_catalog: 1\ngpu_types:\n  box: {{memory: {}, device: cpu, peak_flops: {{fp32: "
        "1e12}}, memory_bandwidth: 10GB/s, compute_units: 4, base_memory: 1MiB}}\n",
        bytes);
    return load_inputs(job, options.site_config, {}, [&](const SiteConfig&) { return nodes; });
  };
  const PlanningInputs roomy = with_memory(int64_t{1} << 33);
  const Candidate best = search(roomy.context(), plan_options({}, roomy.site)).candidates.at(0);
  ASSERT_EQ(num_ranks(best.plan), 2);
  const MemoryBreakdown& memory = best.prediction.stages.at(0).memory;
  const int64_t change = change_bytes(memory, memory, roomy.framework);
  ASSERT_GT(change, memory.total());
  EXPECT_TRUE(Replanner(job, best.plan, options).without_room(best.plan, best.plan).empty());

  const PlanningInputs tight = with_memory((memory.total() + change) / 2);
  const SearchResult result = search(tight.context(), plan_options({}, tight.site));
  ASSERT_EQ(result.status, SearchStatus::found) << "it is offered, and marked";
  EXPECT_THAT(candidate_table(tight.context(), result), HasSubstr("restart on change"));
  const Replanner replanner(job, best.plan, options);
  EXPECT_EQ(replanner.without_room(best.plan, best.plan), (std::set<int>{0, 1}));
  Plan moved = best.plan;  // the first rank's process is new: it has no state
  moved.pipelines[0].stages[0].node = "elsewhere";
  EXPECT_EQ(replanner.without_room(moved, best.plan).size(), 1u);
}

TEST_F(ReplannerTest, APlanThatUsesAGpuTwiceIsRefused) {
  plan.pipelines[1].stages[0].gpus = {0};
  EXPECT_THROW(Replanner(job, plan, nowhere()), InputError);
}

TEST_F(ReplannerTest, BetterIsFasterByAFewPercentOrCheaperWhenCostIsTheObjective) {
  Plan fast = plan, faster = plan;
  fast.prediction.emplace();
  fast.prediction->iteration_s = fast.prediction->spent[Expense::cost] = 1.0;
  faster.prediction.emplace();
  faster.prediction->iteration_s = 0.9;
  faster.prediction->spent[Expense::cost] = 2.0;
  EXPECT_TRUE(replanner.better(faster, fast));
  EXPECT_FALSE(replanner.better(fast, faster));
  faster.prediction->iteration_s = 0.99;
  EXPECT_FALSE(replanner.better(faster, fast)) << "not worth a change";
  job.objective = Expense::cost;
  EXPECT_TRUE(replanner.better(fast, faster));
}

TEST(ImaginedNodes, EveryStageGetsGpusOfItsOwn) {
  Plan plan = plan_of({{2, {stage(0, 3, 2, "", {}), stage(3, 6, 1, "", {})}}, {2, {stage(0, 6, 1, "", {})}}});
  place_on_imagined_nodes(plan);
  EXPECT_EQ(plan.pipelines[0].stages[0].node, "stage-0-0");
  EXPECT_EQ(plan.pipelines[0].stages[0].gpus, (std::vector<int>{0, 1}));
  EXPECT_EQ(plan.pipelines[1].stages[0].node, "stage-1-0");
}

TEST(KeepStages, StagesStayWhereTheirLayersAre) {
  // Before: layers 0-2 on n1, 3-5 on n2, and a copy of all on n3, which is lost.
  Plan before = plan_of(
      {{2, {stage(0, 3, 1, "n1", {0}), stage(3, 6, 1, "n2", {0})}}, {2, {stage(0, 6, 1, "n3", {0})}}});
  const Snapshot left = snapshot_of({node_of("n1", {0}), node_of("n2", {0})});
  // The search knows nothing of that, and put the stages the other way round.
  Plan after = plan_of({{4, {stage(0, 4, 1, "n2", {0}), stage(4, 6, 1, "n1", {0})}}});
  EXPECT_DOUBLE_EQ(keep_stages(after, left, held_stages(before)), 5) << "3 layers on n1, 2 on n2";
  EXPECT_EQ(after.pipelines[0].stages[0].node, "n1");
  EXPECT_EQ(after.pipelines[0].stages[1].node, "n2");
}

TEST(KeepStages, TpRanksKeepTheirGpus) {
  Plan before = plan_of({{4, {stage(0, 6, 2, "n1", {3, 1})}}});
  const Snapshot left = snapshot_of({node_of("n1", {0, 1, 2, 3})});
  Plan after = before;
  after.pipelines[0].stages[0].gpus = {0, 1};
  EXPECT_DOUBLE_EQ(keep_stages(after, left, held_stages(before)), 6);
  EXPECT_EQ(after.pipelines[0].stages[0].gpus, (std::vector<int>{3, 1}));
}

TEST(KeepStages, AStageThatNeedsAWholeNodeIsNotLockedOut) {
  // Keeping the single stages on n1 would leave no room for the TP group.
  Plan before = plan_of({{2, {stage(0, 6, 1, "n1", {0})}}, {2, {stage(0, 6, 1, "n2", {0})}}});
  const Snapshot left = snapshot_of({node_of("n1", {0, 1}), node_of("n2", {0, 1})});
  Plan after = plan_of(
      {{2, {stage(0, 3, 2, "n1", {0, 1}), stage(3, 6, 1, "n2", {0})}}, {2, {stage(0, 6, 1, "n2", {1})}}});
  keep_stages(after, left, held_stages(before));
  EXPECT_TRUE(check_plan(after, left).empty());
}

}  // namespace
}  // namespace sailor
