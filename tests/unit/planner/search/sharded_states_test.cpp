#include <gtest/gtest.h>

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

}  // namespace
}  // namespace sailor
