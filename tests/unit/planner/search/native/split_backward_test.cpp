// By how many microbatches stages delay the gradients of weights, against every way that there is.
#include <gtest/gtest.h>

#include <random>

#include "planner/plan/validate.h"
#include "planner/search/native/scorer.h"
#include "planner/search/search.h"
#include "tests/unit/planner/instance.h"

namespace sailor::native {
namespace {

// A node with three GPUs for six blocks, of which the backward of weights takes some part.
test::Instance drawn_node(uint64_t seed) {
  std::mt19937_64 random(seed);
  test::Instance in = test::empty_instance(6, 3 + static_cast<int>(random() % 8));
  for (auto& [shape, layers] : in.profiles.sizes.by_shape)
    for (size_t layer = 0; layer < layers.size(); ++layer) {
      LayerSizes& sizes = layers[layer];
      sizes.parameters = 1'000'000;
      sizes.activation_bytes = 1'000'000;
      if (layer > 0 && layer + 1 < layers.size()) sizes.pending_bytes = 700'000;
    }
  in.add_type("a", 0.01, static_cast<int64_t>(test::uniform(random, 5.2e7, 1.0e8)), 1, {1}, {1});
  const double part = test::uniform(random, 0.2, 0.6);
  for (auto& [key, cell] : in.profiles.layers["a"].cells)
    for (LayerTimes& times : cell) times.weight_s = part * times.backward_s;
  in.add_node("n", "a", 3);
  return in;
}

struct Best {
  double split_s = kNever, whole_s = kNever;
};

// Of one pipeline, however it is cut and delays.
Best best_of(const test::Instance& in) {
  Best best;
  const int layers = in.job.model.num_all_layers();
  const auto look = [&](const Plan& plan, double& best_s) {
    const Prediction prediction = simulate(in.context(), plan);
    if (prediction.fits) best_s = std::min(best_s, prediction.iteration_s);
  };
  look(test::make_plan(in, 1, {{{0, layers, "a", 1}}}), best.whole_s);
  for (int first = 1; first < layers; ++first)
    for (int second = first + 1; second <= layers; ++second) {
      std::vector<test::StageSpec> cuts = {{0, first, "a", 1}, {first, second, "a", 1}};
      if (second < layers) cuts.push_back({second, layers, "a", 1});
      Plan plan = test::make_plan(in, 1, {cuts});
      std::vector<PlanStage>& stages = plan.pipelines[0].stages;
      look(plan, best.whole_s);
      for (stages[1].weight_delay = kWholeBackward; stages[1].weight_delay <= 1; ++stages[1].weight_delay) {
        if (stages.size() == 2) look(plan, best.split_s);
        if (stages.size() == 2) continue;
        for (int delay = kWholeBackward; delay <= 2; ++delay) {
          stages[2].weight_delay = delay;
          look(plan, best.split_s);
        }
      }
    }
  best.split_s = std::min(best.split_s, best.whole_s);
  return best;
}

SearchResult searched(const test::Instance& in, const PlanFeatures& allow) {
  PlanOptions options;
  options.cost_model = CostModel::native;
  options.space = SearchSpace::full;
  options.allow = allow;
  return search(in.context(), options);
}

TEST(SplitBackward, ASearchFindsTheBestDelaysAndItsBoundIsBelow) {
  int split = 0, gained = 0;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    const test::Instance in = drawn_node(seed);
    const SearchResult result = searched(in, {PlanFeature::split_backward});
    const Best best = best_of(in);
    ASSERT_EQ(result.status == SearchStatus::found, best.split_s < kNever) << "seed " << seed;
    if (result.status != SearchStatus::found) continue;
    const Candidate& found = result.candidates[0];
    for (const PlanPipeline& pipeline : found.plan.pipelines)
      for (const PlanStage& stage : pipeline.stages) split += stage.weight_delay != kWholeBackward;
    gained += found.prediction.iteration_s < best.whole_s * 0.99;
    EXPECT_LE(found.prediction.iteration_s, best.split_s * 1.01) << "seed " << seed;
    ASSERT_TRUE(result.bound_iteration_s);
    EXPECT_LE(*result.bound_iteration_s, std::min(best.split_s, found.prediction.iteration_s) * (1 + 1e-9))
        << "seed " << seed;
    EXPECT_TRUE(check_plan(found.plan, in.job, {PlanFeature::split_backward}).empty());
  }
  EXPECT_GT(split, 20);
  EXPECT_GT(gained, 10);
}

// Not without the feature, nor where the profile does not say what it would save.
TEST(SplitBackward, IsLeftToThoseWhoAllowItAndKnowItsTimes) {
  test::Instance in = drawn_node(1);
  in.catalog.gpu_types["a"].memory_bytes = 100'000'000;
  const auto splits = [&](const PlanFeatures& allow) {
    const SearchResult result = searched(in, allow);
    int count = 0;
    for (const Candidate& candidate : result.candidates)
      for (const PlanPipeline& pipeline : candidate.plan.pipelines)
        for (const PlanStage& stage : pipeline.stages) count += stage.weight_delay != kWholeBackward;
    return count;
  };
  EXPECT_GT(splits({PlanFeature::split_backward}), 0);
  EXPECT_EQ(splits({}), 0);
  for (auto& [key, cell] : in.profiles.layers["a"].cells)
    for (LayerTimes& times : cell) times.weight_s = 0;
  EXPECT_EQ(splits({PlanFeature::split_backward}), 0);
}

}  // namespace
}  // namespace sailor::native
