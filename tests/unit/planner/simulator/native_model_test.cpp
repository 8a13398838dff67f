#include "planner/simulator/native_model.h"

#include <gtest/gtest.h>

#include "planner/spec/error.h"
#include "tests/unit/planner/instance.h"

namespace sailor {
namespace {

using test::Instance;

Instance two_types() {
  Instance in = test::empty_instance(4, 8);
  in.add_type("fast", 0.02, int64_t{1} << 40, 3.6);
  in.add_type("slow", 0.05, int64_t{1} << 40, 1.8);
  in.add_node("f", "fast", 4);
  in.add_node("s", "slow", 4);
  return in;
}

TEST(NativeModel, OneGpuNeedsNoNetwork) {
  Instance in = two_types();
  in.profiles.network = {};
  in.profiles.layers["fast"].overheads = {1000, 0.5};
  const Prediction p = simulate(in.context(), test::make_plan(in, 1, {{{0, 6, "fast", 1}}}));
  const double per_microbatch = 0.02 * (4 + 0.2 + 1.3), update = 6 * 0.02 * 0.05;
  EXPECT_NEAR(p.pipeline_s, 8 * per_microbatch, 1e-12);
  EXPECT_NEAR(p.update_s, update, 1e-12);
  EXPECT_DOUBLE_EQ(p.sync_s, 0);
  EXPECT_NEAR(p.iteration_s, 8 * per_microbatch + update + 0.5, 1e-12);
  EXPECT_EQ(p.stages.at(0).memory.base_bytes, 1000);
}

TEST(NativeModel, AMissingLinkIsAnErrorThatNamesThePair) {
  Instance in = two_types();
  in.profiles.network = {};
  const Plan plan = test::make_plan(in, 1, {{{0, 3, "fast", 1}, {3, 6, "slow", 1}}});
  try {
    simulate(in.context(), plan);
    FAIL() << "a link that nobody measured was free";
  } catch (const InputError& e) {
    EXPECT_NE(std::string(e.what()).find("\"fast\""), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("\"slow\""), std::string::npos) << e.what();
  }
}

TEST(NativeModel, TheSlowestPipelineWithItsOwnMicrobatchesDecides) {
  const Instance in = two_types();
  Plan plan = test::make_plan(in, 1, {{{0, 6, "fast", 1}}, {{0, 6, "slow", 1}}});
  const double even = simulate(in.context(), plan).pipeline_s;
  EXPECT_NEAR(even, 4 * 0.05 * 5.5, 1e-12);
  plan.pipelines[0].microbatches = 6;
  plan.pipelines[1].microbatches = 2;
  EXPECT_NEAR(simulate(in.context(), plan).pipeline_s, 6 * 0.02 * 5.5, 1e-12);
}

TEST(NativeModel, GradientSyncOfUnlikeCutsGoesByCommonLayers) {
  Instance in = two_types();
  in.set_network(0, 1e9);
  // Layers 0-1 | 2 | 3-5 are held by different pairs of stages.
  const Plan plan = test::make_plan(
      in, 1, {{{0, 2, "fast", 1}, {2, 6, "fast", 1}}, {{0, 3, "slow", 1}, {3, 6, "slow", 1}}});
  const Prediction p = simulate(in.context(), plan);
  const double per_layer = 2 * 1 * (4e6 / 2) / 1e9;
  EXPECT_NEAR(p.stages.at(0).sync_s, 2 * per_layer, 1e-12);
  EXPECT_NEAR(p.stages.at(1).sync_s, 4 * per_layer, 1e-12);
  EXPECT_NEAR(p.stages.at(2).sync_s, 3 * per_layer, 1e-12);
  EXPECT_NEAR(p.stages.at(3).sync_s, 3 * per_layer, 1e-12);
}

TEST(NativeModel, FewMicrobatchesHoldFewActivations) {
  const Instance in = two_types();
  Plan plan = test::make_plan(in, 1, {{{0, 2, "fast", 1}, {2, 4, "fast", 1}, {4, 6, "fast", 1}}});
  EXPECT_EQ(simulate(in.context(), plan).stages.at(0).in_flight, 3);
  plan.pipelines[0].microbatches = 2;
  const Prediction p = simulate(in.context(), plan);
  EXPECT_EQ(p.stages.at(0).in_flight, 2);
  EXPECT_EQ(p.stages.at(0).memory.activations_bytes, 2 * 2 * 4'000'000);
}

TEST(NativeModel, PartsAddUpToTheIteration) {
  const Instance in = two_types();
  const Prediction p = simulate(
      in.context(), test::make_plan(in, 2, {{{0, 3, "fast", 2}, {3, 6, "slow", 1}}, {{0, 6, "slow", 2}}}));
  EXPECT_NEAR(p.iteration_s, p.pipeline_s + p.sync_s + p.update_s + p.overhead_s, 1e-12);
  for (const StagePrediction& s : p.stages) {
    EXPECT_GT(s.busy_fraction, 0);
    EXPECT_LE(s.busy_fraction, 1);
  }
}

TEST(NativeModel, FasterLayersOrMoreBandwidthNeverPredictASlowerRun) {
  for (uint64_t seed = 0; seed < 40; ++seed) {
    Instance in = two_types();
    std::mt19937_64 random(seed);
    const int cut = 1 + static_cast<int>(random() % 5), other = 1 + static_cast<int>(random() % 5);
    const Plan plan = test::make_plan(
        in, 1 + static_cast<int>(random() % 2),
        {{{0, cut, "fast", 2}, {cut, 6, "slow", 1}}, {{0, other, "slow", 1}, {other, 6, "fast", 1}}});
    const double bandwidth = 1e7 * static_cast<double>(1 + random() % 100);
    in.set_network(1e-4, bandwidth);
    const double before = simulate(in.context(), plan).iteration_s;
    in.set_network(1e-4, bandwidth * 2);
    const double wider = simulate(in.context(), plan).iteration_s;
    EXPECT_LE(wider, before) << "seed " << seed;
    for (auto& [cell, times] : in.profiles.layers["fast"].cells)
      for (LayerTimes& t : times) t.backward_s *= 0.8;
    EXPECT_LE(simulate(in.context(), plan).iteration_s, wider) << "seed " << seed;
  }
}

}  // namespace
}  // namespace sailor
