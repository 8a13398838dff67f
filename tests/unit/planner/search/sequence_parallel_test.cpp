#include <gtest/gtest.h>

#include "planner/plan/validate.h"
#include "planner/search/search.h"
#include "tests/unit/drawn.h"
#include "tests/unit/planner/instance.h"
#include "tests/unit/planner/search/never_worse.h"

namespace sailor {
namespace {

using test::Instance;

PlanOptions without_split_tokens() {
  PlanOptions options;
  options.time_limit_s = 60;
  options.explain = false;
  options.allow.erase(PlanFeature::sequence_parallel);
  return options;
}

PlanOptions with_split_tokens() {
  PlanOptions options = without_split_tokens();
  options.allow.insert(PlanFeature::sequence_parallel);
  return options;
}

// Every rank of a TP group holds all activations of its layers, unless it splits the tokens.
Instance whole_activations(int64_t bytes_of_layer) {
  Instance in = test::empty_instance(4, 8);
  for (auto& [shape, layers] : in.profiles.sizes.by_shape)
    for (LayerSizes& layer : layers) layer.activation_bytes = bytes_of_layer;
  return in;
}

// Two GPUs, and 6 layers of 16 bytes for each of 1,000,000 parameters: half of them, 48 MB, and all
// activations, 48 MB, are on each GPU of a TP group, and on that of the first of two stages.
TEST(SequenceParallelSearch, SplitsTokensWhereNothingElseFits) {
  Instance in = whole_activations(8'000'000);
  in.add_type("a", 0.01, 85'000'000, 1, {1});
  in.add_node("n", "a", 2);
  EXPECT_EQ(search(in.context(), without_split_tokens()).status, SearchStatus::infeasible);
  const SearchResult result = search(in.context(), with_split_tokens());
  ASSERT_EQ(result.status, SearchStatus::found);
  const Candidate& best = result.candidates[0];
  EXPECT_TRUE(best.plan.sequence_parallel);
  EXPECT_TRUE(check_plan(best.plan, in.job).empty());
  EXPECT_EQ(best.prediction.peak_memory_bytes(), 6 * 8'000'000 + 6 * 8'000'000 / 2);
  EXPECT_EQ(best.prediction.iteration_s, simulate(in.context(), best.plan).iteration_s);
}

// Where a block only pays for its gathers.
TEST(SequenceParallelSearch, DoesNotSplitTokensForNothing) {
  Instance in = whole_activations(8'000'000);
  in.add_type("a", 0.01, int64_t{1} << 40, 1, {1}, {2});
  in.add_node("n", "a", 4);
  for (const Candidate& candidate : search(in.context(), with_split_tokens()).candidates)
    EXPECT_FALSE(candidate.plan.sequence_parallel);
}

// A plan that splits tokens has room for a larger microbatch, at which GPUs are faster.
TEST(SequenceParallelSearch, SplitsTokensWhereTheMemoryMakesAPlanFaster) {
  Instance in = whole_activations(4'000'000);
  in.add_type("a", 0.01, 85'000'000, 1, {1, 2}, {2});
  in.add_node("n", "a", 2);
  in.set_network(0, 1e12);
  const SearchResult without = search(in.context(), without_split_tokens());
  const SearchResult with = search(in.context(), with_split_tokens());
  ASSERT_EQ(without.status, SearchStatus::found);
  EXPECT_EQ(without.candidates[0].plan.microbatch, 1);
  EXPECT_EQ(with.candidates[0].plan.microbatch, 2);
  EXPECT_TRUE(with.candidates[0].plan.sequence_parallel);
  EXPECT_LT(with.candidates[0].prediction.iteration_s, without.candidates[0].prediction.iteration_s);
}

TEST(SequenceParallelSearch, IsNeverWorseThanWithoutAndKeepsItsBound) {
  test::expect_never_worse(
      904, test::drawn(6u), PlanFeature::sequence_parallel,
      [](const Plan& plan) { return plan.sequence_parallel; },
      [](Instance& in) {
        for (auto& [shape, layers] : in.profiles.sizes.by_shape)
          for (LayerSizes& layer : layers) layer.activation_bytes = 6'000'000 + 2'000'000 / shape.tp;
      });
}

// A framework that always splits tokens, or never does, has no such choice.
TEST(SequenceParallelSearch, OffersOtherFrameworksWhatTheyTake) {
  Instance in = whole_activations(8'000'000);
  in.add_type("a", 0.01, 85'000'000, 1, {1});
  in.add_node("n", "a", 2);
  FrameworkStyle style = own_framework();
  style.uniform_plans = true;
  const PlanningContext context{in.job, in.snapshot, in.catalog, in.profiles, style};
  EXPECT_EQ(search(context, with_split_tokens()).status, SearchStatus::infeasible);
  style.flags = FrameworkStyle::Flags::megatron;
  const SearchResult result = search(context, with_split_tokens());
  ASSERT_EQ(result.status, SearchStatus::found);
  EXPECT_TRUE(result.candidates[0].plan.sequence_parallel);
  style.sequence_parallel = true;
  EXPECT_EQ(search(context, with_split_tokens()).status, SearchStatus::infeasible);
}

}  // namespace
}  // namespace sailor
