// Which stages the plans of before make familiar, and that planning again finds what planning from nothing
// does.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/search/pass_tables.h"
#include "planner/search/search_state.h"
#include "tests/unit/planner/instance.h"

namespace sailor {
namespace {

using testing::UnorderedElementsAre;

// 16 GPUs of a fast type, 16 of a slow one, in nodes of four.
struct Familiar : ::testing::Test {
  test::Instance in = test::empty_instance(6, 64);
  PlanOptions options;

  Familiar() {
    in.add_type("fast", 0.02, int64_t{1} << 40, 3.6, {1, 2}, {1, 2});
    in.add_type("slow", 0.05, int64_t{1} << 40, 1.2, {1, 2}, {1, 2});
    for (const char* type : {"fast", "slow"})
      for (int node = 0; node < 4; ++node) in.add_node(std::string(type) + std::to_string(node), type, 4);
    options.cost_model = CostModel::published;
    options.space = SearchSpace::paper;
  }

  // The slowest options of the modes, as "TYPE xTP", "+" for mixes.
  std::set<std::string> familiar_modes(const std::vector<Plan>& previous) {
    options.previous = previous;
    const PlanningContext context = in.context();
    SearchState state(context, options);
    state.configurations = list_configurations(state.context, state.resources, state.tables, state.goal,
                                               state.overhead_s, false, state.result.rejected)
                               .list;
    const ModeCosts& costs = *state.tables_of(state.configurations.front(), Pass::familiar).costs;
    std::set<std::string> out;
    for (const StageMode& mode : costs.modes()) {
      const Option& option = state.resources.options[mode.slowest()];
      out.insert(option.gpu_type + " x" + std::to_string(option.tp) +
                 (mode.kind == StageMode::Kind::mixed ? "+" : ""));
    }
    return out;
  }
};

TEST_F(Familiar, StagesOfOneKindMakeThatKindFamiliar) {
  const Plan plan = test::make_plan(in, 1, {{{0, 4, "fast", 1}, {4, 8, "slow", 2}}});
  EXPECT_THAT(familiar_modes({plan}), UnorderedElementsAre("fast x1", "slow x2"));
}

TEST_F(Familiar, MixedStagesMakeMixesFamiliarAndNothingElse) {
  const Plan plan = test::make_plan(in, 1, {{{0, 8, "fast", 1}}, {{0, 8, "slow", 2}}});
  for (const std::string& mode : familiar_modes({plan})) EXPECT_EQ(mode.back(), '+') << mode;
  EXPECT_FALSE(familiar_modes({plan}).empty());
}

TEST_F(Familiar, WhatIsNoLongerThereIsLeftOut) {
  const Plan plan = test::make_plan(in, 1, {{{0, 4, "gone", 1}, {4, 8, "slow", 1}}});
  EXPECT_THAT(familiar_modes({plan}), UnorderedElementsAre("slow x1"));
}

TEST_F(Familiar, PlanningAgainIsAsGoodAsFromNothing) {
  for (const Objective objective : {Objective::throughput, Objective::cost}) {
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
