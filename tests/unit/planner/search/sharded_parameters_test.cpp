#include <gtest/gtest.h>

#include "planner/plan/validate.h"
#include "planner/search/search.h"
#include "tests/unit/drawn.h"
#include "tests/unit/planner/instance.h"

namespace sailor {
namespace {

using test::Instance;

PlanOptions options_with(std::initializer_list<PlanFeature> features) {
  PlanOptions options;
  options.time_limit_s = 60;
  options.explain = false;
  options.allow = features;
  return options;
}

PlanOptions up_to_gradients() {
  return options_with({PlanFeature::zero1, PlanFeature::zero2});
}

PlanOptions up_to_parameters() {
  return options_with({PlanFeature::zero1, PlanFeature::zero2, PlanFeature::zero3});
}

// Eight GPUs, eight microbatches, and 12 layers of 16 bytes for each of 1,000,000 parameters. One stage needs
// 48 MB of activations, 12 of optimizer states and 14 of gradients; of weights 48, or 14 with ZeRO-3.
Instance eight_small_gpus(int64_t memory_bytes) {
  Instance in = test::empty_instance(10, 8);
  in.add_type("a", 0.01, memory_bytes, 1, {1}, {1});
  in.add_node("n", "a", 8);
  in.set_network(0, 1e12);
  return in;
}

TEST(ShardedParametersSearch, TakesFewerStagesWithTheMemoryThatItSaves) {
  const Instance in = eight_small_gpus(120'000'000);
  const SearchResult without = search(in.context(), up_to_gradients());
  const SearchResult all = search(in.context(), up_to_parameters());
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
       search(eight_small_gpus(int64_t{1} << 40).context(), up_to_parameters()).candidates)
    EXPECT_LT(candidate.plan.zero, Zero::gradients);
  Instance in = eight_small_gpus(120'000'000);
  in.job.training.lora.emplace();
  for (const Candidate& candidate : search(in.context(), up_to_parameters()).candidates)
    EXPECT_LT(candidate.plan.zero, Zero::parameters);
}

TEST(ShardedParametersSearch, IsNeverWorseThanWithoutAndKeepsItsBound) {
  int sharded = 0;
  for (uint64_t seed = 900; seed < 900 + test::drawn(16u); ++seed) {
    Instance in = test::random_instance(seed, 0);
    PlanOptions without;
    without.time_limit_s = 60;
    without.explain = false;
    PlanOptions with = without;
    with.allow = all_plan_features();
    const SearchResult plain = search(in.context(), without), all = search(in.context(), with);
    if (plain.status == SearchStatus::found) {
      ASSERT_EQ(all.status, SearchStatus::found) << seed;
      EXPECT_LE(all.candidates[0].prediction.iteration_s, plain.candidates[0].prediction.iteration_s) << seed;
    }
    for (const Candidate& candidate : all.candidates) {
      sharded += candidate.plan.zero == Zero::parameters;
      EXPECT_TRUE(check_plan(candidate.plan, in.job).empty()) << seed;
      EXPECT_EQ(candidate.prediction.iteration_s, simulate(in.context(), candidate.plan).iteration_s);
      EXPECT_TRUE(candidate.prediction.fits);
      EXPECT_LE(all.bound_iteration_s.value_or(0), candidate.prediction.iteration_s * (1 + 1e-9)) << seed;
    }
  }
  EXPECT_GT(sharded, 0);
}

}  // namespace
}  // namespace sailor
