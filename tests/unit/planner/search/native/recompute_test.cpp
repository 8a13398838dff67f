// How much stages recompute: the least that fits, against every way that there is.
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "planner/plan/validate.h"
#include "planner/search/native/recompute_levels.h"
#include "planner/search/native/scorer.h"
#include "planner/search/search.h"
#include "tests/unit/planner/instance.h"

namespace sailor::native {
namespace {

std::vector<Recompute> hull_of(const std::map<Recompute, std::pair<double, double>>& again_and_kept) {
  const bool offload = again_and_kept.contains(Recompute::offload);
  return lower_hull(
      trained_levels(offload), [&](Recompute level) { return again_and_kept.at(level).first; },
      [&](Recompute level) { return again_and_kept.at(level).second; });
}

TEST(RecomputeLevels, LevelsAboveTheLineBetweenOthersAreLeftOut) {
  using enum Recompute;
  EXPECT_EQ(hull_of({{none, {0, 100}}, {light, {1, 70}}, {mlp, {5, 30}}, {full, {9, 5}}}),
            (std::vector{none, light, mlp, full}));
  // Half of each of `light` and `full` keeps less for the same time.
  EXPECT_EQ(hull_of({{none, {0, 100}}, {light, {1, 70}}, {mlp, {5, 50}}, {full, {9, 5}}}),
            (std::vector{none, light, full}));
  // What saves nothing, or is not known.
  EXPECT_EQ(hull_of({{none, {0, 100}}, {light, {0, 100}}, {mlp, {0, 100}}, {full, {9, 5}}}),
            (std::vector{none, full}));
  // What takes no longer than `full` and keeps less replaces it; what takes a little longer does not.
  EXPECT_EQ(hull_of({{none, {0, 100}}, {light, {1, 70}}, {mlp, {5, 30}}, {full, {9, 5}}, {offload, {9, 0}}}),
            (std::vector{none, light, mlp, offload}));
  EXPECT_EQ(hull_of({{none, {0, 100}}, {light, {1, 70}}, {mlp, {5, 30}}, {full, {9, 5}}, {offload, {11, 0}}}),
            (std::vector{none, light, mlp, full, offload}));
}

// One or two groups of GPUs for six blocks whose activations fill them.
test::Instance crowded(uint64_t seed, int blocks = 6) {
  std::mt19937_64 random(seed);
  test::Instance in = test::empty_instance(blocks, 8);
  for (auto& [shape, layers] : in.profiles.sizes.by_shape)
    for (size_t layer = 0; layer < layers.size(); ++layer) {
      LayerSizes& sizes = layers[layer];
      sizes.parameters = 100'000;
      sizes.activation_bytes = 10'000'000;
      if (layer == 0 || layer + 1 == layers.size()) continue;
      sizes.light_bytes = 7'000'000;
      sizes.mlp_bytes = 3'500'000;
      sizes.checkpoint_bytes = 500'000;
    }
  in.add_type("a", 0.01, static_cast<int64_t>(test::uniform(random, 3e7, 1.1e8)), 1, {1}, {1});
  const double mlp = test::uniform(random, 0.3, 0.7);
  for (auto& [key, cell] : in.profiles.layers["a"].cells)
    for (LayerTimes& times : cell) {
      times.light_s = 0.03 * times.forward_s;
      times.mlp_s = mlp * times.forward_s;
    }
  in.add_node("n", "a", 1 + static_cast<int>(random() % 2));
  return in;
}

std::vector<StageRecompute> all_ways(const PlanStage& stage, int layers) {
  const int blocks = std::min(stage.end_layer, layers - 1) - std::max(stage.first_layer, 1);
  const auto levels = trained_levels(false);
  std::vector<StageRecompute> ways(levels.begin(), levels.end());
  for (const Recompute level : levels)
    for (const Recompute deep : levels)
      for (int count = 1; deep > level && count < blocks; ++count) ways.push_back({deep, count, level});
  return ways;
}

// The fastest way to train one pipeline, however it recomputes; infinite if nothing fits.
double fastest_s(const test::Instance& in, int stages) {
  const int layers = in.job.model.num_all_layers();
  double best_s = kNever;
  const auto look = [&](Plan plan) {
    const Prediction prediction = simulate(in.context(), plan);
    if (prediction.fits) best_s = std::min(best_s, prediction.iteration_s);
  };
  for (int cut = 1; cut < (stages == 1 ? 2 : layers); ++cut) {
    std::vector<test::StageSpec> cuts = {{0, stages == 1 ? layers : cut, "a", 1}};
    if (stages == 2) cuts.push_back({cut, layers, "a", 1});
    Plan plan = test::make_plan(in, 1, {cuts});
    std::vector<PlanStage>& of = plan.pipelines[0].stages;
    for (const StageRecompute& first : all_ways(of.front(), layers)) {
      of.front().recompute = first;
      if (stages == 1) {
        look(plan);
        continue;
      }
      for (const StageRecompute& second : all_ways(of.back(), layers)) {
        of.back().recompute = second;
        look(plan);
      }
    }
  }
  return best_s;
}

TEST(RecomputeLevels, ASearchFindsTheFastestWayAndItsBoundIsBelow) {
  int found = 0, recomputing = 0;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    const test::Instance in = crowded(seed);
    const int gpus = in.snapshot.nodes[0].gpus;
    PlanOptions options;
    options.cost_model = CostModel::native;
    options.space = SearchSpace::full;
    options.allow = {PlanFeature::recompute};
    const SearchResult result = search(in.context(), options);
    double best_s = fastest_s(in, 1);
    if (gpus > 1) best_s = std::min(best_s, fastest_s(in, 2));
    ASSERT_EQ(result.status == SearchStatus::found, best_s < kNever) << "seed " << seed;
    if (result.status != SearchStatus::found) continue;
    ++found;
    const Candidate& best = result.candidates[0];
    for (const PlanStage& stage : best.plan.pipelines[0].stages)
      recomputing += stage.recompute != Recompute::none;
    EXPECT_LE(best.prediction.iteration_s, best_s * 1.002) << "seed " << seed;
    ASSERT_TRUE(result.bound_iteration_s);
    EXPECT_LE(*result.bound_iteration_s, std::min(best_s, best.prediction.iteration_s) * (1 + 1e-9))
        << "seed " << seed;
    EXPECT_TRUE(check_plan(best.plan, in.job, options.allow).empty());
  }
  EXPECT_GT(found, 30);
  EXPECT_GT(recomputing, 15);
}

struct Problem {
  explicit Problem(const test::Instance& in)
      : context(in.context()),
        resources(usable_resources(context, {}, rejected)),
        space(context, resources) {}

  std::map<std::string, int64_t> rejected;
  const PlanningContext context;
  const Resources resources;
  const Space space;
};

TEST(RecomputeLevels, ChunksOfAGroupShareItsMemory) {
  test::Instance in = crowded(0, 14);
  in.snapshot.nodes[0].gpus = 2;
  in.snapshot.nodes[0].free_gpus = {0, 1};
  int mixed = 0;
  for (int64_t memory = 60'000'000; memory < 500'000'000; memory += 30'000'000) {
    in.catalog.gpu_types["a"].memory_bytes = memory;
    Problem problem(in);
    IterationModel model(problem.space.kinds);
    PlanTemplate of;
    of.interleave = 4;
    of.classes.resize(1);
    of.classes[0].microbatches = 8;
    for (int end = 2; end <= 16; end += 2)
      of.classes[0].stages.push_back({problem.space.option_of(0, {1}), end, Recompute::full});
    const auto fits = [&](const PlanTemplate& one) {
      CompactPlan plan;
      bool all = true;
      EXPECT_TRUE(assign(problem.space, one, plan));
      model.iteration_if_fits(plan, kNever, all);
      return all;
    };
    const bool possible = fits(of);
    recompute_least(problem.space, model, of, 0);
    EXPECT_EQ(fits(of), possible) << memory;
    // A level less for any chunk is too much, as it is the first of several that gains the most.
    for (TemplateStage& stage : of.classes[0].stages) {
      if (!possible || stage.recompute.deepest() != Recompute::full) continue;
      ++mixed;
      const StageRecompute before = stage.recompute;
      stage.recompute = Recompute::none;
      EXPECT_FALSE(fits(of)) << memory;
      stage.recompute = before;
    }
  }
  EXPECT_GT(mixed, 4);
}

TEST(RecomputeLevels, FrameworksWithoutPartsRecomputeStagesWhole) {
  test::Instance in = crowded(3);
  FrameworkStyle whole = own_framework();
  whole.recompute_parts = false;
  PlanOptions options;
  options.cost_model = CostModel::native;
  options.space = SearchSpace::full;
  options.allow = {PlanFeature::recompute};
  const PlanningContext context{in.job, in.snapshot, in.catalog, in.profiles, whole};
  for (int64_t memory = 40'000'000; memory < 120'000'000; memory += 20'000'000) {
    in.catalog.gpu_types["a"].memory_bytes = memory;
    const SearchResult result = search(context, options);
    if (result.status != SearchStatus::found) continue;
    for (const PlanStage& stage : result.candidates[0].plan.pipelines[0].stages)
      EXPECT_TRUE(stage.recompute == Recompute::none || stage.recompute == Recompute::full);
  }
}

}  // namespace
}  // namespace sailor::native
