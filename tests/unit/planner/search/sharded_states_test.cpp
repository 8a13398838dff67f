#include <gtest/gtest.h>

#include "planner/plan/plan_nodes.h"
#include "planner/plan/validate.h"
#include "planner/search/search.h"
#include "tests/unit/drawn.h"
#include "tests/unit/planner/instance.h"
#include "tests/unit/planner/search/never_worse.h"

namespace sailor {
namespace {

using test::Instance;

PlanOptions with_sharded_optimizers() {
  PlanOptions options;
  options.time_limit_s = 60;
  options.explain = false;
  options.allow = {PlanFeature::zero1};
  return options;
}

PlanOptions with_sharded_gradients() {
  PlanOptions options = with_sharded_optimizers();
  options.allow.insert(PlanFeature::zero2);
  return options;
}

PlanOptions with_sharded_parameters() {
  PlanOptions options = with_sharded_gradients();
  options.allow.insert(PlanFeature::zero3);
  return options;
}

// Eight GPUs, and 12 layers of 16 bytes for each of 1,000,000 parameters. With one stage, ZeRO-1 needs 48 MB
// of weights, 48 of gradients, 12 of optimizer states and 48 of activations; ZeRO-2 only 14 of gradients, and
// ZeRO-3 only 14 of weights, too.
Instance eight_gpus(int64_t memory_bytes, int global_batch = 64) {
  Instance in = test::empty_instance(10, global_batch);
  in.add_type("a", 0.01, memory_bytes, 1, {1}, {1});
  in.add_node("n", "a", 8);
  in.set_network(0, 1e12);
  return in;
}

TEST(ShardedGradientsSearch, TakesFewerStagesWithTheMemoryThatItSaves) {
  const Instance in = eight_gpus(140'000'000);
  const SearchResult without = search(in.context(), with_sharded_optimizers());
  const SearchResult with = search(in.context(), with_sharded_gradients());
  ASSERT_EQ(without.status, SearchStatus::found);
  ASSERT_EQ(with.status, SearchStatus::found);
  EXPECT_GT(without.candidates[0].plan.pipelines[0].stages.size(), 1u);
  const Candidate& best = with.candidates[0];
  EXPECT_EQ(best.plan.zero, Zero::gradients);
  EXPECT_EQ(best.plan.pipelines.size(), 8u);
  EXPECT_LT(best.prediction.iteration_s, without.candidates[0].prediction.iteration_s);
  EXPECT_TRUE(check_plan(best.plan, in.job).empty());
  EXPECT_EQ(best.prediction.iteration_s, simulate(in.context(), best.plan).iteration_s);
}

TEST(ShardedGradientsSearch, SumsOnceWhereThereIsMemory) {
  for (const Candidate& candidate :
       search(eight_gpus(int64_t{1} << 40).context(), with_sharded_gradients()).candidates)
    EXPECT_LT(candidate.plan.zero, Zero::gradients);
}

TEST(ShardedGradientsSearch, ElasticJobsTakeThemOnlyWhereNothingElseFits) {
  Instance in = eight_gpus(140'000'000);
  in.job.elastic.enabled = true;
  const SearchResult result = search(in.context(), with_sharded_gradients());
  ASSERT_EQ(result.status, SearchStatus::found);
  EXPECT_EQ(result.candidates[0].plan.zero, Zero::none);
}

// With the feature of a degree.
void expect_never_worse(uint64_t first_seed, PlanFeature feature, Zero degree) {
  test::expect_never_worse(first_seed, test::drawn(6u), feature,
                           [&](const Plan& plan) { return plan.zero == degree; });
}

TEST(ShardedGradientsSearch, IsNeverWorseThanWithoutAndKeepsItsBound) {
  expect_never_worse(700, PlanFeature::zero2, Zero::gradients);
}

TEST(ShardedParametersSearch, TakesFewerStagesWithTheMemoryThatItSaves) {
  const Instance in = eight_gpus(120'000'000, 8);
  const SearchResult without = search(in.context(), with_sharded_gradients());
  const SearchResult all = search(in.context(), with_sharded_parameters());
  ASSERT_EQ(without.status, SearchStatus::found);
  ASSERT_EQ(all.status, SearchStatus::found);
  EXPECT_GT(without.candidates[0].plan.pipelines[0].stages.size(), 1u);
  const Candidate& best = all.candidates[0];
  EXPECT_EQ(best.plan.zero, Zero::parameters);
  EXPECT_EQ(best.plan.pipelines.size(), 8u);
  EXPECT_LT(best.prediction.iteration_s, without.candidates[0].prediction.iteration_s);
  EXPECT_TRUE(check_plan(best.plan, in.job).empty());
  EXPECT_EQ(best.prediction.iteration_s, simulate(in.context(), best.plan).iteration_s);
}

TEST(ShardedParametersSearch, GathersNothingWhereThereIsMemoryNorForAdapters) {
  for (const Candidate& candidate :
       search(eight_gpus(int64_t{1} << 40, 8).context(), with_sharded_parameters()).candidates)
    EXPECT_LT(candidate.plan.zero, Zero::gradients);
  Instance in = eight_gpus(120'000'000, 8);
  in.job.training.lora.emplace();
  for (const Candidate& candidate : search(in.context(), with_sharded_parameters()).candidates)
    EXPECT_LT(candidate.plan.zero, Zero::parameters);
}

TEST(ShardedParametersSearch, IsNeverWorseThanWithoutAndKeepsItsBound) {
  expect_never_worse(900, PlanFeature::zero3, Zero::parameters);
}

PlanOptions with_groups() {
  PlanOptions options = with_sharded_parameters();
  options.allow.insert(PlanFeature::hybrid_zero);
  return options;
}

// Where the network is slow, what is gathered in every microbatch stays on the node.
TEST(HybridZeroSearch, SharesParametersOnTheNode) {
  Instance in = eight_gpus(120'000'000, 16);
  in.add_node("m", "a", 8);
  in.set_network(LinkCurve::from_rates(0, 1e12, 0), LinkCurve::from_rates(0, 2e9, 2e9));
  const SearchResult without = search(in.context(), with_sharded_parameters());
  const SearchResult with = search(in.context(), with_groups());
  ASSERT_EQ(without.status, SearchStatus::found);
  ASSERT_EQ(with.status, SearchStatus::found);
  const Candidate& best = with.candidates[0];
  EXPECT_EQ(best.plan.zero_group, 8) << summary(best.plan);
  EXPECT_LT(best.prediction.iteration_s, without.candidates[0].prediction.iteration_s);
  EXPECT_TRUE(check_plan(best.plan, in.job).empty());
  EXPECT_EQ(best.prediction.iteration_s, simulate(in.context(), best.plan).iteration_s);
  ASSERT_TRUE(with.bound_iteration_s);
  EXPECT_LE(*with.bound_iteration_s, best.prediction.iteration_s);
}

// Four layers, of which a GPU has no room for one with all states; with ZeRO-1 and four pipelines of four
// stages it has for half of them.
TEST(HybridZeroSearch, StatesOfElasticJobsHaveCopiesOnOtherNodes) {
  Instance in = test::empty_instance(2, 4);
  in.add_type("a", 0.01, 24'000'000, 1, {1}, {1});
  for (const char* node : {"m", "n"}) in.add_node(node, "a", 8);
  in.set_network(0, 1e12);
  in.job.elastic.enabled = true;
  const SearchResult shared = search(in.context(), with_sharded_parameters());
  const SearchResult result = search(in.context(), with_groups());
  ASSERT_EQ(shared.status, SearchStatus::found);
  EXPECT_FALSE(only_holders(shared.candidates[0].plan).empty());
  ASSERT_EQ(result.status, SearchStatus::found);
  const Candidate& best = result.candidates[0];
  EXPECT_GT(best.plan.zero_group, 0) << summary(best.plan);
  EXPECT_TRUE(only_holders(best.plan).empty());
  EXPECT_TRUE(check_plan(best.plan, in.job).empty());
  EXPECT_EQ(best.prediction.iteration_s, simulate(in.context(), best.plan).iteration_s);
}

// On nodes of four, with a slow network between them, and little memory.
TEST(HybridZeroSearch, IsNeverWorseThanWithoutAndKeepsItsBound) {
  test::expect_never_worse(
      1100, test::drawn(6u), PlanFeature::hybrid_zero, [](const Plan& plan) { return plan.zero_group > 0; },
      [](Instance& in) {
        for (SnapshotNode& node : in.snapshot.nodes) {
          node.gpus = 4;
          node.free_gpus = {0, 1, 2, 3};
        }
        in.set_network(LinkCurve::from_rates(0, 1e12, 0), LinkCurve::from_rates(0, 1e8, 1e8));
      });
}

}  // namespace
}  // namespace sailor
