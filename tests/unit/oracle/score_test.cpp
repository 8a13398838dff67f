// The judge of single plans against the planner's published model: two programs, one definition.
#include "tests/oracle/score.h"

#include <gtest/gtest.h>

#include "planner/plan/validate.h"
#include "tests/oracle/generate.h"
#include "tests/oracle/product.h"
#include "tests/oracle/random.h"

namespace sailor::oracle {
namespace {

// Any grid of profiled cells; whether it fits is another question.
GridPlan random_plan(const Problem& problem, Random& random) {
  GridPlan plan;
  std::vector<int> microbatches;
  for (const TypeOfGpu& type : problem.types)
    for (const auto& [key, cell] : type.times) microbatches.push_back(key.first);
  plan.microbatch = random.pick(microbatches);
  std::vector<Cell> cells;
  for (int t = 0; t < static_cast<int>(problem.types.size()); ++t)
    for (const auto& [key, times] : problem.types[t].times)
      for (int z = 0; z < static_cast<int>(problem.zones.size()); ++z)
        if (key.first == plan.microbatch) cells.push_back({t, z, key.second});
  plan.cuts = {0};
  for (int layer = 1; layer < problem.layers; ++layer)
    if (random.chance(0.3)) plan.cuts.push_back(layer);
  plan.cuts.push_back(problem.layers);
  const auto most = static_cast<int>((problem.global_batch + plan.microbatch - 1) / plan.microbatch);
  plan.pipelines.resize(static_cast<size_t>(random.integer(1, std::min(6, most))));
  for (auto& pipeline : plan.pipelines)
    for (int i = 0; i < plan.stages(); ++i) pipeline.push_back(random.pick(cells));
  return plan;
}

TEST(OracleScore, EqualsThePublishedModelOfThePlanner) {
  int fitting = 0, valid = 0;
  for (uint64_t seed = 1; seed <= 400; ++seed) {
    const Problem problem = generate(seed, {});
    const PlannerInputs inputs = planner_inputs(problem);
    Random random(seed);
    for (int n = 0; n < 10; ++n) {
      const GridPlan grid = random_plan(problem, random);
      const Plan plan = planner_plan(problem, grid);
      const Prediction prediction = simulate(inputs.context(), plan, CostModel::published);
      const Score own = score(problem, grid);
      EXPECT_NEAR(prediction.iteration_s / own.iteration_s, 1, 1e-9) << "seed " << seed;
      EXPECT_NEAR(prediction.usd_per_iteration() / own.usd, 1, 1e-9) << "seed " << seed;
      bool fits = true;
      for (int i = 0; i < grid.stages(); ++i)
        for (const auto& pipeline : grid.pipelines)
          fits = fits && memory_bytes(problem, pipeline[i].tp, grid.microbatch, grid.cuts[i],
                                      grid.cuts[i + 1], grid.stages() - i) <=
                             static_cast<double>(problem.types[pipeline[i].type].memory_bytes);
      EXPECT_EQ(prediction.fits, fits) << "seed " << seed;
      fitting += fits ? 1 : 0;
      if (violation(problem, grid).empty()) {
        ++valid;
        EXPECT_EQ(check_plan(plan, inputs.job), std::vector<std::string>{});
        EXPECT_EQ(check_plan(plan, inputs.snapshot), std::vector<std::string>{});
        EXPECT_TRUE(prediction.fits);
      }
      EXPECT_EQ(grid_plan(problem, plan)->pipelines, grid.pipelines);
    }
  }
  EXPECT_GT(fitting, 400);
  EXPECT_GT(valid, 40);
}

Problem tiny() {
  Problem problem;
  problem.layers = 3;
  problem.global_batch = 8;
  problem.types.resize(1);
  problem.types[0].name = "a";
  problem.types[0].memory_bytes = 4'000'000'000;
  for (int tp : {1, 2}) {
    problem.types[0].times[{1, tp}] = {{1, 2, 0.5}, {2, 4, 0.25}, {1, 1, 0.125}};
    problem.sizes[tp] = {
        {1'000'000, 500'000, 1'000'000}, {2'000'000, 500'000, 1'000'000}, {1'000'000, 500'000, 0}};
  }
  problem.zones = {{"z1", 0, true}, {"z2", 1, true}};
  problem.nodes = {{"n1", 0, 0, 2, {0, 1}}, {"n2", 0, 0, 1, {0}}, {"n3", 0, 1, 1, {0}}};
  problem.usd_per_hour = {{3600, 1800}};
  problem.egress_usd_per_gb = {{0, 1}, {2, 0}};
  for (int from = 0; from < 2; ++from)
    for (int to = 0; to < 2; ++to)
      for (int a : {1, 2})
        for (int b : {1, 2})
          problem.links[{{0, from, a}, {0, to, b}}].points = {{1, 1e-6}, {1e6, 1}};  // 1 MB/s
  return problem;
}

// By hand: 2 MB messages of 2 s; nmb 4; stages 9 s + 2 s and 2 s + 4 s.
TEST(OracleScore, AgreesWithPaperAndPencil) {
  const Problem problem = tiny();
  const GridPlan plan{1, {0, 2, 3}, {{{0, 0, 1}, {0, 1, 1}}, {{0, 0, 1}, {0, 1, 1}}}};
  const Score s = score(problem, plan);
  // Sync: 12 MB of the first stage between two replicas: 2 * 1 * 6 s.
  EXPECT_NEAR(s.iteration_s, 3 * 11 + 11 + 6 + 0.5 + 12, 1e-6);
  // Two GPUs at 1 and two at 0.5 USD/s; 4 microbatches x 2 pipelines x 2 x 1 USD/GB x 2 MB.
  EXPECT_NEAR(s.usd, 3 * s.iteration_s + 4 * 2 * 2 * 2e-3, 1e-6);
  EXPECT_EQ(violation(problem, plan), "the groups of type a in zone z2 do not fit its nodes");
}

TEST(OracleScore, PlansThatBreakARuleDoNotCount) {
  Problem problem = tiny();
  EXPECT_EQ(violation(problem, {1, {0, 3}, {{{0, 0, 2}}, {{0, 0, 1}}}}), "");
  EXPECT_EQ(violation(problem, {1, {0, 3}, {{{0, 0, 1}}, {{0, 1, 1}}}}), "stage 0: replicas in two regions");
  EXPECT_EQ(violation(problem, {2, {0, 3}, {{{0, 0, 1}}}}), "stage 0: not profiled");
  EXPECT_EQ(violation(problem, {1, {0, 2}, {{{0, 0, 1}}}}), "does not cover the layers");
  EXPECT_EQ(violation(problem, {1, {0, 2, 3}, {{{0, 0, 2}, {0, 0, 2}}}}),
            "the groups of type a in zone z1 do not fit its nodes");
  problem.types[0].max_gpus = 1;
  EXPECT_EQ(violation(problem, {1, {0, 3}, {{{0, 0, 2}}}}), "2 GPUs of type a, the job may use 1");
  problem.types[0].memory_bytes = 2'100'000'000;
  EXPECT_EQ(violation(problem, {1, {0, 3}, {{{0, 0, 1}}}}), "stage 0: memory");
  problem.zones[0].wanted = false;
  EXPECT_EQ(violation(problem, {1, {0, 3}, {{{0, 0, 1}}}}), "a zone that the job must not use");
}

TEST(OracleScore, GroupsFitOnlyWhereNodesHoldThem) {
  EXPECT_TRUE(groups_fit({3, 3}, {{1, 2}, {2, 2}}));
  EXPECT_FALSE(groups_fit({3, 3}, {{2, 3}}));
  EXPECT_FALSE(groups_fit({4, 1}, {{4, 1}, {2, 1}}));
  EXPECT_TRUE(groups_fit({}, {{1, 0}}));
}

}  // namespace
}  // namespace sailor::oracle
