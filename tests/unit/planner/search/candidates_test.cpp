// The plans that a search keeps, and how many of them it places.
#include "planner/search/candidates.h"

#include <gtest/gtest.h>

#include "planner/search/search_state.h"
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
    options.cost_model = CostModel::native;
  }

  void score(Candidates& candidates, int pipelines) {
    Plan plan =
        test::make_plan(in, 1, std::vector<std::vector<test::StageSpec>>(pipelines, {{0, 6, "t", 1}}));
    ASSERT_TRUE(candidates.score(plan, rejected));
  }
};

TEST_F(CandidatesOfTwo, PlacesWhatIsCloseUntilItIsLate) {
  const PlanningContext context = in.context();
  SearchState state(context, options);
  score(state.candidates, 8);
  score(state.candidates, 6);
  int asked = 0;
  const auto after_one = [&] { return ++asked > 1; };
  const auto at_once = [] { return true; };
  EXPECT_EQ(state.candidates.placed(1, after_one, rejected).size(), 1u);
  EXPECT_EQ(asked, 1) << "the second was placed too, and there is no third";
  EXPECT_EQ(state.candidates.placed(1, at_once, rejected).size(), 1u);
  EXPECT_EQ(state.candidates.placed(2, at_once, rejected).size(), 2u) << "as many as asked for";
}

TEST_F(CandidatesOfTwo, RanksNoMoreThanItIsAskedFor) {
  const PlanningContext context = in.context();
  SearchState state(context, options);
  score(state.candidates, 6);
  score(state.candidates, 8);
  EXPECT_EQ(state.candidates.ranked(5).size(), 2u);
  const auto best = state.candidates.ranked(1);
  ASSERT_EQ(best.size(), 1u);
  EXPECT_EQ(best[0].second.pipelines.size(), 8u);
  EXPECT_DOUBLE_EQ(best[0].first, state.candidates.best());
}

}  // namespace
}  // namespace sailor
