// Boxes hold every plan: their bound is never above the best one, on problems that the other search
// (template_search.h) solves to the end; and what their beams find is not far from it.
#include "planner/search/branch_and_bound/branch_and_bound.h"

#include <gtest/gtest.h>

#include "planner/search/problem/goal.h"
#include "tests/oracle/generate.h"
#include "tests/oracle/product.h"

namespace sailor {
namespace {

constexpr int kBoxProblems = 40;

struct OneConfiguration {
  OneConfiguration(const PlanningContext& context, const Resources& resources, int microbatch, int replicas)
      : costs(context, resources, microbatch), classes(costs, resources, all_of(resources)) {
    const int total = (context.job.training.global_batch + microbatch - 1) / microbatch;
    configurations.push_back({&classes, replicas, static_cast<double>((total + replicas - 1) / replicas), 0});
  }
  std::vector<PlacementClass> all_of(const Resources& resources) const {
    std::vector<PlacementClass> out = spread_classes(costs, resources);
    for (PlacementClass& placement : mixed_classes(costs, resources)) out.push_back(std::move(placement));
    return out;
  }
  StageCosts costs;
  ClassCosts classes;
  std::vector<BranchConfiguration> configurations;
};

TEST(BranchAndBound, BoundsHoldAndBeamsFindPipelinesNearThem) {
  double gaps = 0, misses = 0;
  int problems = 0;
  for (int number = 0; problems < kBoxProblems; ++number) {
    const oracle::Problem problem = oracle::generate(oracle::instance_seed(7, number), {3, 3, 40, 8});
    oracle::PlannerInputs inputs = planner_inputs(problem);
    inputs.job.objective = Objective::throughput;
    PlanOptions options;
    options.space = SearchSpace::paper;
    options.cost_model = CostModel::published;
    options.top_k = 1;
    options.time_limit_s = 60;
    options.explain = false;
    const SearchResult known = search(inputs.context(), options);
    if (known.candidates.empty()) continue;
    ++problems;
    SCOPED_TRACE("problem " + std::to_string(number));
    const Candidate& best = known.candidates[0];
    const double best_s = best.prediction.iteration_s;
    std::map<std::string, int64_t> rejected;
    const PlanningContext context = inputs.context();
    const Resources resources = usable_resources(context, options, rejected);
    OneConfiguration one(context, resources, best.plan.microbatch,
                         static_cast<int>(best.plan.pipelines.size()));
    double found_s = kNever;
    const BranchOutcome outcome = branch_and_bound(
        one.configurations, [&] { return std::min(found_s, 3 * best_s); },
        [&](const BranchConfiguration&, const PipelineTemplate& pipeline) {
          EXPECT_EQ(pipeline.stages.front().first_layer, 0);
          EXPECT_EQ(pipeline.stages.back().end_layer, one.costs.layers());
          found_s = std::min(found_s, pipeline.iteration_s);
        },
        [] { return false; });
    EXPECT_GT(outcome.priced, 0);
    EXPECT_LE(one.configurations[0].bound_s, best_s * (1 + 1e-9));
    EXPECT_LE(one.configurations[0].bound_s, found_s * (1 + 1e-9));
    gaps += best_s / one.configurations[0].bound_s - 1;
    misses += found_s / best_s - 1;
  }
  RecordProperty("mean_gap", std::to_string(gaps / problems));
  EXPECT_LT(gaps / problems, 0.3);
  EXPECT_LT(misses / problems, 0.05);
}

}  // namespace
}  // namespace sailor
