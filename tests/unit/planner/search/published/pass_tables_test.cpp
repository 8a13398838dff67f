// Which stages the previous plans had, and that replanning finds what a search from scratch finds.
#include "planner/search/published/pass_tables.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/search/published/search_state.h"
#include "planner/search/search.h"
#include "tests/unit/planner/instance.h"

namespace sailor {
namespace {

using testing::UnorderedElementsAre;

// 16 GPUs of a fast type, 16 of a slow one, in nodes of four.
struct PreviousPass : ::testing::Test {
  test::Instance in = test::empty_instance(6, 64);
  PlanOptions options;

  PreviousPass() {
    in.add_type("fast", 0.02, int64_t{1} << 40, 3.6, {1, 2}, {1, 2});
    in.add_type("slow", 0.05, int64_t{1} << 40, 1.2, {1, 2}, {1, 2});
    for (const char* type : {"fast", "slow"})
      for (int node = 0; node < 4; ++node) in.add_node(std::string(type) + std::to_string(node), type, 4);
    options.cost_model = CostModel::published;
    options.space = SearchSpace::paper;
  }

  // The slowest options of the placement classes, as "TYPE xTP", "+" for mixes.
  std::set<std::string> previous_classes(const std::vector<Plan>& previous) {
    options.previous = previous;
    const PlanningContext context = in.context();
    SearchState state(context, options);
    state.configurations = list_configurations(state.context, state.resources, state.tables, state.goal,
                                               false, state.result.rejected)
                               .list;
    const ClassCosts& costs = *state.tables_of(state.configurations.front(), Pass::previous).costs;
    std::set<std::string> out;
    for (const PlacementClass& placement : costs.classes()) {
      const Option& option = state.resources.options[placement.slowest()];
      out.insert(option.gpu_type + " x" + std::to_string(option.shape.tp) +
                 (placement.kind == PlacementClass::Kind::mixed ? "+" : ""));
    }
    return out;
  }
};

TEST_F(PreviousPass, HasTheClassOfAStageOfOneKind) {
  const Plan plan = test::make_plan(in, 1, {{{0, 4, "fast", 1}, {4, 8, "slow", 2}}});
  EXPECT_THAT(previous_classes({plan}), UnorderedElementsAre("fast x1", "slow x2"));
}

TEST_F(PreviousPass, HasOnlyMixedClassesOfMixedStages) {
  const Plan plan = test::make_plan(in, 1, {{{0, 8, "fast", 1}}, {{0, 8, "slow", 2}}});
  for (const std::string& placement : previous_classes({plan})) EXPECT_EQ(placement.back(), '+') << placement;
  EXPECT_FALSE(previous_classes({plan}).empty());
}

TEST_F(PreviousPass, IgnoresMissingOptions) {
  const Plan plan = test::make_plan(in, 1, {{{0, 4, "gone", 1}, {4, 8, "slow", 1}}});
  EXPECT_THAT(previous_classes({plan}), UnorderedElementsAre("slow x1"));
}

TEST_F(PreviousPass, ReplanningIsAsGoodAsFromScratch) {
  for (const Objective objective : {Objective::throughput, Objective(Expense::cost)}) {
    in.job.objective = objective;
    const SearchResult before = search(in.context(), options);
    ASSERT_EQ(before.status, SearchStatus::found);
    PlanOptions again = options;
    for (const Candidate& candidate : before.candidates) again.previous.push_back(candidate.plan);
    for (const char* lost : {"fast0", "slow3"}) {
      test::Instance fewer = in;
      std::erase_if(fewer.snapshot.nodes, [&](const SnapshotNode& node) { return node.name == lost; });
      const SearchResult nothing = search(fewer.context(), options);
      const SearchResult replanned = search(fewer.context(), again);
      ASSERT_EQ(replanned.status, SearchStatus::found);
      EXPECT_TRUE(replanned.stats.complete);
      const Prediction &a = replanned.candidates[0].prediction, &b = nothing.candidates[0].prediction;
      EXPECT_LE(objective == Objective::throughput ? a.iteration_s : a.usd_per_iteration(),
                (objective == Objective::throughput ? b.iteration_s : b.usd_per_iteration()) * (1 + 1e-9))
          << lost;
    }
  }
}

}  // namespace
}  // namespace sailor
