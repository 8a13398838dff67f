// The shape of the previous plan when its pipelines cross zones: with GPUs lost in one zone they are cut
// apart, but the shape still fits, with other zones for some replicas.
#include "planner/search/published/previous_shape.h"

#include <gtest/gtest.h>

#include "planner/search/problem/previous_plans.h"
#include "planner/simulator/published_model.h"
#include "tests/unit/planner/instance.h"

namespace sailor {
namespace {

// Pipelines of three stages on one GPU each, the first stage in zone z1, the others in z2.
struct SameShape : ::testing::Test {
  test::Instance in = test::empty_instance(4, 48);
  Plan previous;
  PlanOptions options;

  SameShape() {
    in.add_type("t", 0.02, int64_t{1} << 40, 3.6, {1}, {1});
    for (const char* zone : {"z1", "z2"})
      for (int node = 0; node < 4; ++node)
        in.add_node(std::string(zone) + "-" + std::to_string(node), "t", 4, zone);
    // 8 pipelines: 8 GPUs in z1 (of 16), 16 in z2 (all).
    previous = test::make_plan(
        in, 1,
        std::vector<std::vector<test::StageSpec>>(8, {{0, 2, "t", 1}, {2, 4, "t", 1}, {4, 6, "t", 1}}));
    for (PlanPipeline& pipeline : previous.pipelines)
      for (size_t i = 1; i < 3; ++i) pipeline.stages[i].zone = "z2";
    options.cost_model = CostModel::published;
    options.space = SearchSpace::paper;
  }

  static void search_shape(SearchState& state, const Plan& previous) {
    state.configurations = list_configurations(state.context, state.resources, state.tables, state.goal,
                                               false, state.result.rejected)
                               .list;
    search_previous_shape(state, previous, Pass::alike);
  }

  // What is found, by the shape alone.
  double best_of_shape(size_t* pipelines) {
    const PlanningContext context = in.context();
    SearchState state(context, options);
    search_shape(state, previous);
    const std::vector<Candidate> best = state.candidates.placed(1, state.result.rejected);
    *pipelines = best.empty() ? 0 : best[0].plan.pipelines.size();
    if (best.empty()) return state.best_sum;
    const Plan& plan = best[0].plan;
    EXPECT_EQ(plan.pipelines[0].stages.size(), 3u);
    for (size_t i = 0; i < 3; ++i)
      EXPECT_EQ(plan.pipelines[0].stages[i].first_layer, static_cast<int>(2 * i));
    EXPECT_NEAR(simulate(context, plan, CostModel::published).iteration_s / state.best_sum, 1, 1e-12);
    return state.best_sum;
  }
};

TEST_F(SameShape, FindsOtherZonesForReplicasThatLostTheirs) {
  // Half of z2 is gone: four pipelines as they were, eight with two or three stages in z1.
  std::erase_if(in.snapshot.nodes,
                [](const SnapshotNode& node) { return node.name == "z2-0" || node.name == "z2-1"; });
  const std::vector<Plan> as_it_was = still_possible(previous, in.job, in.snapshot);
  ASSERT_FALSE(as_it_was.empty());
  EXPECT_EQ(as_it_was[0].pipelines.size(), 4u);
  size_t pipelines = 0;
  const double found = best_of_shape(&pipelines);
  EXPECT_EQ(pipelines, 8u);
  EXPECT_LT(found, simulate(in.context(), as_it_was[0], CostModel::published).iteration_s);
}

TEST_F(SameShape, TakesMorePipelinesWhereThereIsRoom) {
  for (int node = 4; node < 6; ++node) in.add_node("z1-" + std::to_string(node), "t", 4, "z1");
  size_t pipelines = 0;
  best_of_shape(&pipelines);
  EXPECT_EQ(pipelines, 12u);
}

TEST_F(SameShape, TakesLargerMicrobatchesWhereTheyAreFaster) {
  // With many rounds that two sequences at once take less than twice as long counts for more than bubbles.
  in.add_type("t", 0.02, int64_t{1} << 40, 3.6, {1, 2}, {1});
  in.job.training.global_batch = previous.global_batch = 480;
  const PlanningContext context = in.context();
  SearchState state(context, options);
  search_shape(state, previous);
  ASSERT_FALSE(state.candidates.empty());
  EXPECT_EQ(state.candidates.placed(1, state.result.rejected)[0].plan.microbatch, 2);
}

TEST_F(SameShape, LeavesOutWhatIsNotThere) {
  size_t pipelines = 0;
  previous.pipelines[0].stages[1].gpu_type = "gone";
  best_of_shape(&pipelines);
  EXPECT_EQ(pipelines, 0u);
}

TEST_F(SameShape, LeavesOutWhatDoesNotFitItsMemory) {
  // Two layers fit a GPU, four do not.
  const std::vector<LayerSizes>& layers = in.profiles.sizes.by_shape.at({1});
  in.catalog.gpu_types["t"].memory_bytes = published::memory({layers.data(), 3}, {1}, 1, 3).total();
  size_t pipelines = 0;
  best_of_shape(&pipelines);
  EXPECT_EQ(pipelines, 10u);
  for (PlanPipeline& pipeline : previous.pipelines) {
    pipeline.stages[0].end_layer = pipeline.stages[1].first_layer = 4;
    pipeline.stages[1].end_layer = pipeline.stages[2].first_layer = 5;
  }
  best_of_shape(&pipelines);
  EXPECT_EQ(pipelines, 0u);
}

TEST_F(SameShape, LeavesOutUnlikeCuts) {
  previous.pipelines[0].stages[0].end_layer = previous.pipelines[0].stages[1].first_layer = 3;
  size_t pipelines = 0;
  best_of_shape(&pipelines);
  EXPECT_EQ(pipelines, 0u);
}

}  // namespace
}  // namespace sailor
