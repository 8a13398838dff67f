// The plans that a search keeps, and how many of them it places.
#include "planner/search/problem/candidates.h"

#include <gtest/gtest.h>

#include "planner/search/published/search_state.h"
#include "tests/unit/planner/instance.h"

namespace sailor {
namespace {

// Plans of eight and of six pipelines of one stage on a GPU each, 48 sequences.
struct CandidatesOfTwo : ::testing::Test {
  test::Instance in = test::empty_instance(4, 48);
  PlanOptions options;
  std::map<std::string, int64_t> rejected;

  CandidatesOfTwo() {
    in.add_type("t", 0.02, int64_t{1} << 40, 3.6, {1}, {1});
    for (int node = 0; node < 2; ++node) in.add_node("n" + std::to_string(node), "t", 4);
    in.set_network(1e-5, 1e10);
    options.cost_model = CostModel::published;
  }

  void score(Candidates& candidates, int pipelines) {
    Plan plan =
        test::make_plan(in, 1, std::vector<std::vector<test::StageSpec>>(pipelines, {{0, 6, "t", 1}}));
    candidates.score(plan, rejected);
    ASSERT_TRUE(rejected.empty());
  }
};

TEST_F(CandidatesOfTwo, PlacesAsManyAsAskedForBestFirst) {
  const PlanningContext context = in.context();
  SearchState state(context, options);
  score(state.candidates, 6);
  score(state.candidates, 8);
  const std::vector<Candidate> one = state.candidates.placed(1, rejected);
  ASSERT_EQ(one.size(), 1u);
  EXPECT_EQ(one[0].plan.pipelines.size(), 8u);
  EXPECT_DOUBLE_EQ(state.candidates.value(one[0].prediction), state.candidates.best());
  EXPECT_EQ(state.candidates.placed(5, rejected).size(), 2u);
}

}  // namespace
}  // namespace sailor
