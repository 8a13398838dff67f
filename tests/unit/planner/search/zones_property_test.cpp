// What must hold where the order of zones is no longer searched exactly: several zones and regions, more GPUs
// than assignment.h enumerates. Random problems of the oracle's generator, published model, both objectives.
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "planner/plan/plan_json.h"
#include "planner/plan/validate.h"
#include "planner/search/problem/goal.h"
#include "planner/search/search.h"
#include "tests/oracle/generate.h"
#include "tests/oracle/product.h"
#include "tests/oracle/random.h"
#include "tests/unit/drawn.h"

namespace sailor {
namespace {

using oracle::PlannerInputs;
using oracle::Problem;
using oracle::Random;

constexpr double kZoneSlack = 1 + 1e-9;
constexpr int kProblems = 5, kLeastGpus = 20;

SearchResult found(const PlannerInputs& inputs) {
  PlanOptions options;
  options.space = SearchSpace::paper;
  options.cost_model = CostModel::published;
  options.top_k = 1;
  options.time_limit_s = 600;  // never reached, on a busy machine either
  options.explain = false;
  return search(inputs.context(), options);
}

double best(const PlannerInputs& inputs) {
  const SearchResult result = found(inputs);
  EXPECT_TRUE(result.stats.complete);
  if (result.candidates.empty()) return kNever;
  EXPECT_TRUE(check_plan(result.candidates[0].plan, inputs.snapshot).empty());
  const Prediction& p = result.candidates[0].prediction;
  const bool throughput = inputs.job.objective == Objective::throughput;
  const double value = throughput ? p.iteration_s : p.usd_per_iteration();
  const auto& bound = throughput ? result.bound_iteration_s : result.bound[Expense::cost];
  EXPECT_TRUE(bound.has_value());
  EXPECT_LE(bound.value_or(kNever), value * kZoneSlack);
  return value;
}

int zones_of(const PlannerInputs& inputs) {
  std::set<std::string> zones;
  for (const SnapshotNode& node : inputs.snapshot.nodes) zones.insert(node.zone);
  return static_cast<int>(zones.size());
}

template <typename Check>
void for_each_problem(Check check) {
  int problems = 0;
  for (int number = 0; problems < test::drawn(kProblems); ++number) {
    const Problem problem = oracle::generate(oracle::instance_seed(2026, number), {2, 4, 48, 8});
    PlannerInputs inputs = planner_inputs(problem);
    int gpus = 0;
    for (const SnapshotNode& node : inputs.snapshot.nodes) gpus += static_cast<int>(node.free_gpus.size());
    if (gpus < kLeastGpus || zones_of(inputs) < 2) continue;
    SCOPED_TRACE("problem " + std::to_string(number));
    inputs.job.objective = ++problems % 2 == 0 ? Objective::throughput : Expense::cost;
    Random random(static_cast<uint64_t>(number));
    check(problem, inputs, random);
  }
}

TEST(ZonesProperty, MoreGpusNeverWorsenTheObjective) {
  for_each_problem([](const Problem& problem, PlannerInputs inputs, Random& random) {
    const double before = best(inputs);
    // In a zone that is there, of any type.
    SnapshotNode node = random.pick(inputs.snapshot.nodes);
    node.name = "a-new-one";
    node.gpu_type = random.pick(problem.types).name;
    node.gpus = 4;
    node.free_gpus = {0, 1, 2, 3};
    inputs.snapshot.nodes.push_back(node);
    EXPECT_LE(best(inputs), before * kZoneSlack);
  });
}

TEST(ZonesProperty, AnotherZoneNeverWorsensTheObjective) {
  for_each_problem([](const Problem&, PlannerInputs inputs, Random& random) {
    const double all = best(inputs);
    const std::string zone = random.pick(inputs.snapshot.nodes).zone;
    std::erase_if(inputs.snapshot.nodes, [&](const SnapshotNode& node) { return node.zone == zone; });
    EXPECT_LE(all, best(inputs) * kZoneSlack);
  });
}

TEST(ZonesProperty, ALooserLimitNeverWorsensTheObjective) {
  for_each_problem([](const Problem&, PlannerInputs inputs, Random& random) {
    const SearchResult free = found(inputs);
    if (free.candidates.empty()) return;
    const Prediction& p = free.candidates[0].prediction;
    double value = 0;
    for (const double share : {1.05, 1.2, 1.5}) {
      if (inputs.job.objective == Objective::throughput)
        inputs.job.constraints.most[Expense::cost] =
            p.usd_per_iteration() * share * random.uniform(0.7, 0.72);
      else
        inputs.job.constraints.min_iterations_per_s = p.iterations_per_s() * 1.4 / share;
      const double now = best(inputs);
      if (value > 0) {
        EXPECT_LE(now, value * kZoneSlack);
      }
      value = now;
    }
  });
}

TEST(ZonesProperty, TheOrderOfNodesChangesNothing) {
  for_each_problem([](const Problem&, PlannerInputs inputs, Random& random) {
    const SearchResult before = found(inputs);
    random.shuffle(inputs.snapshot.nodes);
    const SearchResult after = found(inputs);
    ASSERT_EQ(after.candidates.size(), before.candidates.size());
    if (!after.candidates.empty()) {
      EXPECT_EQ(to_json(after.candidates[0].plan), to_json(before.candidates[0].plan));
    }
    EXPECT_EQ(after.bound_iteration_s, before.bound_iteration_s);
    EXPECT_EQ(after.bound[Expense::cost], before.bound[Expense::cost]);
  });
}

}  // namespace
}  // namespace sailor
