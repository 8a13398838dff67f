// Layouts: their value is the prediction of the published model for every arrangement, and improving one
// keeps the invariants. On random problems of the oracle's generator.
#include "planner/search/costs/layout.h"

#include <gtest/gtest.h>

#include <cmath>

#include "planner/search/improvement/layout_improvement.h"
#include "planner/search/improvement/pipeline_blocks.h"
#include "planner/search/problem/goal.h"
#include "tests/oracle/generate.h"
#include "tests/oracle/product.h"
#include "tests/oracle/random.h"

namespace sailor {
namespace {

// Throughput within a limit on what the search follows.
Goal limit_of(const PlanningContext& context, double most) {
  Goal goal;
  goal.most[goal_of(context.job).followed()] = most;
  return goal;
}

using oracle::PlannerInputs;
using oracle::Random;

constexpr int kLayoutProblems = 60, kLayouts = 12;

// Any cut, any option for every replica; resources and memory may not suffice.
Layout random_layout(Random& random, const StageCosts& costs, int replicas) {
  Layout layout;
  for (int first = 0; first < costs.layers();) {
    const int end = random.integer(first + 1, costs.layers());
    Layout::Stage stage{first, end, {}};
    for (int left = replicas; left > 0;) {
      const int n = random.integer(1, left), option = random.pick(costs.options());
      if (!stage.runs.empty() && stage.runs.back().option == option)
        stage.runs.back().replicas += n;
      else
        stage.runs.push_back({option, n});
      left -= n;
    }
    layout.stages.push_back(std::move(stage));
    first = end;
  }
  return layout;
}

struct Sample {
  const PlanningContext& context;
  const Resources& resources;
  const StageCosts& costs;
  const Layout& layout;
  LayoutValue value;
  int replicas;
  double rounds;
};

// Calls `check` for layouts whose pipelines are linked, half of them with energy as the objective; returns
// how many there were.
template <typename Check>
int for_samples(const Check& check) {
  int samples = 0;
  for (int number = 0; number < kLayoutProblems; ++number) {
    const uint64_t seed = oracle::instance_seed(20, number);
    PlannerInputs inputs = planner_inputs(oracle::generate(seed, {3, 3, 24, 8}));
    if (number % 2 == 1) inputs.job.objective = Expense::energy;
    double watts = 100;
    for (auto& [name, type] : inputs.catalog.gpu_types) type.power = GpuPower{watts, watts *= 2.5};
    const PlanningContext context = inputs.context();
    std::map<std::string, int64_t> rejected;
    PlanOptions options;
    options.space = SearchSpace::paper;
    options.cost_model = CostModel::published;
    const Resources resources = usable_resources(context, options, rejected);
    const StageCosts costs(context, resources, 1);
    if (costs.options().empty()) continue;
    Random random(seed);
    for (int k = 0; k < kLayouts; ++k) {
      const int64_t total = num_microbatches(context.job.training.global_batch, 1);
      const int replicas = random.integer(1, static_cast<int>(std::min<int64_t>(total, 9)));
      const Layout layout = random_layout(random, costs, replicas);
      const double rounds = std::ceil(static_cast<double>(total) / replicas);
      const LayoutValue value = evaluate(costs, resources, layout, replicas, rounds);
      if (!std::isfinite(value.iteration_s)) continue;
      check(Sample{context, resources, costs, layout, value, replicas, rounds});
      ++samples;
    }
  }
  return samples;
}

TEST(LayoutTest, IsWorthWhatThePublishedModelPredicts) {
  const int samples = for_samples([](const Sample& s) {
    const Plan plan = plan_of(s.context, s.resources, s.layout, 1, s.replicas);
    const Prediction p = simulate(s.context, plan, CostModel::published);
    EXPECT_NEAR(s.value.iteration_s, p.iteration_s, 1e-9 * p.iteration_s);
    const double charge = p.total(goal_of(s.context.job).followed());
    EXPECT_NEAR(s.value.charge, charge, 1e-9 * charge);
  });
  EXPECT_GT(samples, 100);
}

TEST(LayoutTest, BlocksAreTheSameLayout) {
  const int samples = for_samples([](const Sample& s) {
    ClassCosts classes(s.costs, s.resources, spread_classes(s.costs, s.resources));
    const AssignmentProblem form{classes, s.replicas, s.rounds, {}};
    BlockCosts costs(form, s.layout);
    const BlockCosts::Columns columns = costs.columns_of(s.layout);
    const PipelineBlocks blocks = BlockCosts::blocks_of(columns);
    EXPECT_EQ(BlockCosts::columns_of(blocks), columns);
    const BlockCosts::Score score = costs.score(blocks);
    EXPECT_NEAR(score.value.iteration_s, s.value.iteration_s, 1e-9 * s.value.iteration_s);
    EXPECT_NEAR(score.value.charge, s.value.charge, 1e-9 * s.value.charge);
    EXPECT_LE(score.smooth.iteration_s, s.value.iteration_s * (1 + 1e-9));
    EXPECT_EQ(costs.excess(blocks) <= 0, within_resources(s.resources, s.layout));
  });
  EXPECT_GT(samples, 100);
}

TEST(LayoutTest, ImprovingKeepsLimitsAndIsNeverWorse) {
  int improved = 0;
  LayoutImprovementOptions options;
  options.steps = 2000;
  for_samples([&](const Sample& s) {
    if (!within_resources(s.resources, s.layout)) return;
    ClassCosts classes(s.costs, s.resources, spread_classes(s.costs, s.resources));
    const AssignmentProblem form{classes, s.replicas, s.rounds, limit_of(s.context, s.value.charge * 1.01)};
    const Assignment better = improve_layout(form, {s.layout, s.value}, options, [] { return false; });
    EXPECT_TRUE(within_resources(s.resources, better.layout));
    EXPECT_LE(better.value.iteration_s, s.value.iteration_s);
    EXPECT_LE(better.value.charge, form.goal.max_charge());
    const LayoutValue again = evaluate(s.costs, s.resources, better.layout, s.replicas, s.rounds);
    EXPECT_EQ(again.iteration_s, better.value.iteration_s);
    const Assignment twice = improve_layout(form, {s.layout, s.value}, options, [] { return false; });
    EXPECT_EQ(twice.value.iteration_s, better.value.iteration_s);
    improved += better.value.iteration_s < s.value.iteration_s * (1 - 1e-9);
  });
  EXPECT_GT(improved, 5);
}

}  // namespace
}  // namespace sailor
