// Which stages keep their optimizer states in the memory of their nodes, against every choice that there is.
#include <gtest/gtest.h>

#include <random>

#include "planner/plan/plan_json.h"
#include "planner/plan/validate.h"
#include "planner/search/search.h"
#include "tests/unit/drawn.h"
#include "tests/unit/planner/search/never_worse.h"

namespace sailor::native {
namespace {

// A node with two GPUs for five blocks, whose states and activations fill them; steps with offloaded states
// take from a part of a microbatch to several. In every other one inputs of blocks are large.
test::Instance full_node(uint64_t seed) {
  std::mt19937_64 random(seed);
  test::Instance in = test::empty_instance(5, 3 + static_cast<int>(random() % 8));
  for (auto& [shape, layers] : in.profiles.sizes.by_shape)
    for (size_t layer = 0; layer < layers.size(); ++layer) {
      layers[layer].parameters = 1'000'000;
      layers[layer].activation_bytes = 10'000'000;
      if (layer > 0 && layer + 1 < layers.size())
        layers[layer].checkpoint_bytes = seed % 2 == 0 ? 500'000 : 4'000'000;
    }
  in.add_type("a", 0.01, static_cast<int64_t>(test::uniform(random, 4e7, 1.2e8)), 1, {1}, {1});
  in.catalog.gpu_types["a"].node.host_bytes_per_s = test::uniform(random, 4e8, 1e10);  // 8 MB a layer
  in.add_node("n", "a", 2);
  return in;
}

struct OfAllWays {
  double any_s = kNever, without_s = kNever;  // with and without offloading
  Plan plan;
};

// Of one pipeline, however it is cut, recomputes and offloads.
OfAllWays best_of_all_ways(const test::Instance& in) {
  OfAllWays best;
  const int layers = in.job.model.num_all_layers();
  const auto look = [&](const Plan& plan) {
    const Prediction prediction = simulate(in.context(), plan);
    if (!prediction.fits) return;
    if (prediction.iteration_s < best.any_s) best.plan = plan;
    best.any_s = std::min(best.any_s, prediction.iteration_s);
    if (!offloads(plan)) best.without_s = std::min(best.without_s, prediction.iteration_s);
  };
  const auto for_each_way = [&](PlanStage& stage, const auto& next) {
    const int blocks = std::min(stage.end_layer, layers - 1) - std::max(stage.first_layer, 1);
    const auto at = [&](Recompute level, int deep, Recompute rest) {
      return deep == blocks && blocks > 0 ? StageRecompute(level) : StageRecompute(level, deep, rest);
    };
    for (const Offload offload : {Offload::none, Offload::optimizer}) {
      stage.offload = offload;
      for (int deep = 0; deep <= blocks; ++deep)
        for (const auto& [level, rest] :
             {std::pair(Recompute::full, Recompute::none), std::pair(Recompute::offload, Recompute::none),
              std::pair(Recompute::offload, Recompute::full)}) {
          stage.recompute = at(level, deep, rest);
          next();
        }
    }
  };
  Plan one = test::make_plan(in, 1, {{{0, layers, "a", 1}}});
  for_each_way(one.pipelines[0].stages[0], [&] { look(one); });
  for (int cut = 1; cut < layers; ++cut) {
    Plan two = test::make_plan(in, 1, {{{0, cut, "a", 1}, {cut, layers, "a", 1}}});
    std::vector<PlanStage>& stages = two.pipelines[0].stages;
    for_each_way(stages[0], [&] { for_each_way(stages[1], [&] { look(two); }); });
  }
  return best;
}

SearchResult offloading_plans(const test::Instance& in, const PlanFeatures& allow) {
  PlanOptions options;
  options.cost_model = CostModel::native;
  options.space = SearchSpace::full;
  options.allow = allow;
  return search(in.context(), options);
}

TEST(Offload, ASearchFindsTheBestStagesAndItsBoundIsBelow) {
  int offloading = 0, inputs = 0, gained = 0, only_so = 0;
  for (uint64_t seed = 0; seed < 30; ++seed) {
    const test::Instance in = full_node(seed);
    const SearchResult result = offloading_plans(in, {PlanFeature::recompute, PlanFeature::offload});
    const OfAllWays best = best_of_all_ways(in);
    ASSERT_EQ(result.status == SearchStatus::found, best.any_s < kNever) << "seed " << seed;
    if (result.status != SearchStatus::found) continue;
    const Candidate& found = result.candidates[0];
    offloading += offloads(found.plan);
    inputs += std::ranges::any_of(found.plan.pipelines[0].stages,
                                  [](const PlanStage& stage) { return stage.recompute.offloads(); });
    gained += found.prediction.iteration_s < best.without_s * 0.98;
    only_so += best.without_s == kNever;
    // Less than a percent is not worth the memory of the nodes.
    EXPECT_LE(found.prediction.iteration_s, best.any_s * 1.0101)
        << "seed " << seed << ": " << to_json(found.plan, -1) << " and " << to_json(best.plan, -1);
    ASSERT_TRUE(result.bound_iteration_s);
    EXPECT_LE(*result.bound_iteration_s, std::min(best.any_s, found.prediction.iteration_s) * (1 + 1e-9))
        << "seed " << seed;
    EXPECT_TRUE(check_plan(found.plan, in.job, {PlanFeature::recompute, PlanFeature::offload}).empty());
  }
  EXPECT_GT(offloading, 10);
  EXPECT_GT(inputs, 3);
  EXPECT_GT(gained, 5);
  EXPECT_GT(only_so, 1);
}

TEST(Offload, NeedsTheFeatureAndARateToTheHost) {
  test::Instance in = full_node(1);
  in.catalog.gpu_types["a"].memory_bytes = 60'000'000;
  const auto any = [&](const PlanFeatures& allow) {
    const SearchResult result = offloading_plans(in, allow);
    return result.status == SearchStatus::found && offloads(result.candidates[0].plan);
  };
  in.catalog.gpu_types["a"].node.host_bytes_per_s = 1e10;
  EXPECT_TRUE(any({PlanFeature::recompute, PlanFeature::offload}));
  EXPECT_FALSE(any({PlanFeature::recompute}));
  in.catalog.gpu_types["a"].node.host_bytes_per_s = 0;
  EXPECT_FALSE(any({PlanFeature::recompute, PlanFeature::offload}));
}

TEST(Offload, IsLimitedByTheMemoryOfNodes) {
  constexpr int64_t kGiB = int64_t{1} << 30;
  test::Instance in = full_node(1);
  in.catalog.gpu_types["a"].memory_bytes = 60'000'000;
  in.catalog.gpu_types["a"].node.host_bytes_per_s = 1e10;
  const auto plan_with = [&](int64_t node_bytes) {
    in.snapshot.nodes[0].host.memory_bytes = node_bytes;
    return offloading_plans(in, {PlanFeature::recompute, PlanFeature::offload});
  };
  const SearchResult enough = plan_with(2 * (4 * kGiB + 100'000'000));
  ASSERT_EQ(enough.status, SearchStatus::found);
  EXPECT_TRUE(offloads(enough.candidates[0].plan));
  for (const Candidate& candidate : plan_with(2 * (4 * kGiB + 1'000'000)).candidates)
    EXPECT_FALSE(offloads(candidate.plan));
  const Prediction lacking = simulate(in.context(), enough.candidates[0].plan);
  EXPECT_FALSE(lacking.fits);
  EXPECT_GT(lacking.stages[0].host_bytes, lacking.stages[0].host_capacity_bytes);
}

TEST(Offload, NeverMakesPlansWorse) {
  test::expect_never_worse(
      907, test::drawn(8u), PlanFeature::offload, [](const Plan& plan) { return offloads(plan); },
      [](test::Instance& in) {
        for (auto& [name, type] : in.catalog.gpu_types) type.node.host_bytes_per_s = 5e9;
      });
}

// A change has the memory of its nodes that the job asked for.
TEST(Offload, AChangeOfAnElasticJobOffloadsOnlyWhatItDidBefore) {
  test::Instance in = full_node(1);
  in.job.elastic.enabled = true;
  in.catalog.gpu_types["a"].memory_bytes = 60'000'000;
  in.catalog.gpu_types["a"].node.host_bytes_per_s = 1e10;
  PlanOptions options;
  const SearchResult first = search(in.context(), options);
  ASSERT_EQ(first.status, SearchStatus::found);
  ASSERT_TRUE(offloads(first.candidates[0].plan));
  options.previous = {first.candidates[0].plan};
  EXPECT_TRUE(offloads(search(in.context(), options).candidates.at(0).plan));
  for (PlanPipeline& pipeline : options.previous[0].pipelines)
    for (PlanStage& stage : pipeline.stages) {
      stage.offload = Offload::none;
      stage.recompute = stage.recompute.without_offload();
    }
  for (const Candidate& candidate : search(in.context(), options).candidates)
    EXPECT_FALSE(offloads(candidate.plan));
}

}  // namespace
}  // namespace sailor::native
